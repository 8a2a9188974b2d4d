"""Does a form, or a cone, that nobody has seen work everywhere, with no edit anywhere else?"""

import json

import numpy as np
import pandas
import pytest
from scipy.sparse.linalg import LinearOperator

import quartbench as qb
from quartbench import instances
from quartbench.cones import CONES, register_cone
from quartbench.errors import ProblemError
from quartbench.forms import FORMS, register_form
from quartbench.forms.dense import DenseForm
from quartbench.precondition import METRICS
from quartbench.solvers import solvers
from quartbench.study.grid import read_instances
from quartbench.study.worker import ConvexBench
from quartbench.testing import check_cone, check_form, check_metric, check_solver, problems
from tests.cones.unseen import IceCreamAndMore
from tests.forms.unseen import Smoothness

N, MASKS = 16, 6

#: Every solver of the package, peers included; other tests may have registered their own.
OURS = [name for name, solver in solvers().items() if solver.__module__.startswith("quartbench.solvers")]


def diffraction(dtype):
    """Return masks and FFTs as an operator, complex or as the real view of that."""
    rng = np.random.default_rng(0)
    masks = np.exp(2j * np.pi * rng.random((MASKS, N)))

    def forward(x):
        return np.fft.fft(masks * x.ravel(), axis=1, norm="ortho").ravel()

    def back(w):
        return (masks.conj() * np.fft.ifft(w.reshape(MASKS, N), axis=1, norm="ortho")).sum(axis=0)

    if dtype is complex:
        return LinearOperator((MASKS * N, N), matvec=forward, rmatvec=back, dtype=complex)
    return LinearOperator(
        (2 * MASKS * N, 2 * N),
        matvec=lambda x: forward(np.ascontiguousarray(x).ravel().view(complex)).view(float),
        rmatvec=lambda w: back(np.ascontiguousarray(w).ravel().view(complex)).view(float),
        dtype=float,
    )


UNSEEN = {
    "FFT": lambda: qb.OperatorForm(diffraction(complex)),
    "real FFT": lambda: qb.OperatorForm(diffraction(float), rank=2),
    "image and adjoint": lambda: Smoothness(4, 5),
}


@pytest.fixture(params=UNSEEN)
def form(request):
    return UNSEEN[request.param]()


def truth(problem, result, gap):
    """Assert that a result is certified, truly, to a gap."""
    assert result.success, result.message
    assert result.gap <= gap
    assert result.lower_bound <= problem.optimum + 1e-13 * abs(problem.optimum)
    assert problem.optimum - 1e-13 * abs(problem.optimum) <= result.fun


@pytest.mark.parametrize("name", problems())
def test_built_in_kinds_pass_their_batteries(name):
    problem = problems()[name]
    check_form(problem.form)
    check_cone(problem.cone, problem.form)
    for metric in METRICS:
        check_metric(qb.metric(problem.form, metric))
    if name != "Gram, free":
        check_metric(qb.metric(problem.form, "uniform").rescaled(3.0))


def test_an_unseen_form_passes_the_battery(form):
    report = check_form(form)
    assert "leverage" in report["terms"]


def test_every_solver_takes_it_in_every_metric(form):
    problem = instances.planted(form, seed=1)
    for solver in OURS:
        for metric in ("auto", *METRICS):
            truth(problem, qb.solve(problem, solver, metric, rel_gap=1e-8, max_iter=20_000), 1e-8)


def test_its_metrics_are_what_they_claim(form):
    weights = qb.lewis_weights(form, eps=1e-3)
    assert weights.converged
    assert weights.kappa_bound <= 1.001 * np.sqrt(form.freedom)
    uniform = qb.metric(form, "uniform")
    assert qb.measured_kappa(form, uniform, starts=2, steps=30) <= uniform.bounds.kappa
    assert qb.leverage(form).sum() == pytest.approx(form.freedom)


def test_many_right_hand_sides_and_single_precision(form):
    C = np.random.default_rng(0).standard_normal((3, form.dim))
    found = qb.solve_many(form, C, rel_gap=1e-8)
    for c, result in zip(C, found, strict=True):
        assert result.success
        assert result.fun == pytest.approx(qb.solve(qb.Problem(form, c), rel_gap=1e-10).fun, rel=1e-7)
    with pytest.raises(ProblemError, match="dtype='float32' is for dense rows in float64, found"):
        qb.solve(qb.Problem(form, C[0]), dtype="float32")


def test_a_form_is_saved_under_a_name_or_says_why_not(tmp_path, monkeypatch):
    monkeypatch.setattr(FORMS, "_found", dict(FORMS._found))
    problem = instances.planted(Smoothness(3, 4))
    with pytest.raises(ProblemError, match=r"Smoothness cannot be saved: .* entry point group 'quartbench.forms'"):
        problem.save(tmp_path / "a.npz")
    register_form("smoothness")(Smoothness)
    again = qb.Problem.load(problem.save(tmp_path / "a.npz"))
    assert isinstance(again.form, Smoothness)
    assert again.optimum == problem.optimum
    del Smoothness.kind
    with pytest.raises(ProblemError, match="OperatorForm cannot be saved: its rows are functions"):
        instances.planted(UNSEEN["FFT"]()).save(tmp_path / "b.npz")


def test_a_study_and_its_peers_run_on_it(tmp_path, monkeypatch):
    def smoothness(size, seed=0):
        """Make the problem of the study."""
        return instances.planted(Smoothness(size, size), seed=seed)

    monkeypatch.setitem(instances.INSTANCES, "smoothness", smoothness)
    (instance,) = read_instances("smoothness:size=4")
    bench = ConvexBench(lambda stage, known: None)
    request = {
        "generator": instance.generator,
        "arguments": json.dumps(dict(instance.arguments)),
        "seed": 0,
        "given": "{}",
        "metric": "auto",
        "kappa": False,
        "rel_gap": 1e-8,
        "max_iter": 1000,
        "time_limit": 60.0,
        "optimum": None,
        "bounds": True,
        "cluster": 0,
        "blocks": 0,
    }
    rows = pandas.DataFrame([bench.run({**request, "spec": spec}) for spec in ("auto", "homgd", "scipy-lbfgs")])
    assert rows.success.all(), rows.message.tolist()
    assert (rows.gap <= 1e-8).all()


# Operators ------------------------------------------------------------------------------------------------------------


def test_bad_operators_say_what_is_wrong():
    matrix = np.random.default_rng(0).standard_normal((6, 3))
    wrong = LinearOperator((6, 3), matvec=lambda x: matrix @ x.ravel(), rmatvec=lambda w: matrix.T @ w.ravel() + 1.0)
    half = LinearOperator((6, 3), matvec=lambda x: matrix @ x.ravel())
    for operator, rank, message in (
        (wrong, 1, r"operator must have the adjoint in rmatvec, found ⟨Mx,w⟩ and ⟨x,Mᵀw⟩ apart by"),
        (half, 1, "operator must have rmatvec"),
        (matrix, 4, "rows must come in blocks of rank=4, found 6 rows"),
        ("rows", 1, "operator must be a LinearOperator, found str"),
        (np.full((6, 3), np.nan), 1, "operator must give finite products"),
    ):
        with pytest.raises(ProblemError, match=message):
            qb.OperatorForm(operator, rank)
    with pytest.raises(ProblemError, match=r"rank is at most 3, but n = 6"):
        qb.Problem(qb.OperatorForm(matrix.T), np.ones(6), qb.Orthant())
    with pytest.raises(ProblemError, match="OperatorForm takes rows by their products"):
        qb.StackedForm(wrong)


def test_an_operator_says_what_its_matrix_says():
    rng = np.random.default_rng(0)
    for matrix, rank in ((rng.standard_normal((30, 6)), 1), (rng.standard_normal((30, 6)), 3)):
        operator, dense = qb.OperatorForm(matrix, rank), qb.StackedForm(matrix, rank)
        problem = instances.planted(dense, seed=3)
        result = qb.solve(qb.Problem(operator, problem.c), rel_gap=1e-12)
        assert result.fun == pytest.approx(problem.optimum, rel=1e-12)
        np.testing.assert_allclose(qb.leverage(operator), qb.leverage(dense), rtol=1e-10)


def test_large_operators_are_certified_without_a_factor(monkeypatch):
    monkeypatch.setattr("quartbench.forms.terms.PRODUCT_DIMENSION", 5)
    monkeypatch.setattr("quartbench.forms.terms.EXACT_COLUMNS", 5)
    form = UNSEEN["FFT"]()
    problem = instances.planted(form, seed=2)
    result = qb.solve(problem, rel_gap=1e-8)
    truth(problem, result, 1e-8)
    assert "rows" not in form._kept  # no column was ever formed


def test_rows_that_are_too_many_to_keep_come_one_by_one(monkeypatch):
    kept = check_form(Smoothness(3, 3))
    monkeypatch.setattr("quartbench.forms.terms.KEPT_BYTES", 0)
    assert check_form(Smoothness(3, 3))["auto"] == kept["auto"]


# Cones ----------------------------------------------------------------------------------------------------------------


def test_an_unseen_cone_passes_the_battery_and_every_solver_takes_it_or_says_why_not():
    form = qb.StackedForm(np.random.default_rng(5).standard_normal((40, 8)))
    cone = IceCreamAndMore()
    check_cone(cone, form)
    problem = instances.planted(form, seed=1, cone=cone)
    took = set()
    for solver in OURS:
        try:
            truth(problem, qb.solve(problem, solver, rel_gap=1e-8), 1e-8)
            took.add(solver)
        except ProblemError as error:
            assert "takes" in str(error)  # noqa: PT017
    assert {"auto", "accel-homgd", "homgd", "gd", "bregman"} <= took
    result, *_ = qb.solve_many(form, [problem.c], cone, rel_gap=1e-8)
    truth(problem, result, 1e-8)


def test_an_unseen_cone_is_saved_under_a_name_or_says_why_not(tmp_path, monkeypatch):
    monkeypatch.setattr(CONES, "_found", dict(CONES._found))
    form = qb.StackedForm(np.random.default_rng(5).standard_normal((40, 8)))
    problem = instances.planted(form, cone=IceCreamAndMore())
    with pytest.raises(ProblemError, match=r"cannot be saved: .* entry point group 'quartbench.cones'"):
        problem.save(tmp_path / "a.npz")
    register_cone(IceCreamAndMore)
    assert isinstance(qb.Problem.load(problem.save(tmp_path / "a.npz")).cone, IceCreamAndMore)


@pytest.mark.parametrize("name", ["dense, free", "dense, orthant", "dense, second-order", "Gram, centred"])
def test_the_generic_slice_is_that_of_each_cone(name):
    problem, rng = problems()[name], np.random.default_rng(0)
    metric = qb.Identity(problem.dim)
    own, generic = problem.cone.slice(problem.c, metric), qb.Cone.slice(problem.cone, problem.c, metric)
    for x in rng.standard_normal((5, problem.dim)):
        np.testing.assert_allclose(generic(x), own(x), rtol=1e-9, atol=1e-11)


def test_the_slice_is_empty_where_c_is_in_the_polar_cone():
    with pytest.raises(ProblemError, match="the slice of the cone where"):
        qb.Cone.slice(qb.Orthant(), -np.ones(3), qb.Identity(3))(np.ones(3))


# The batteries notice -------------------------------------------------------------------------------------------------


def broken_form(**hooks):
    return type("Broken", (Smoothness,), hooks)(3, 4)


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        ({"_adjoint": lambda self, w: 1.01 * Smoothness._adjoint(self, w)}, "not 4ρ|no adjoint"),
        ({"_image": lambda self, x: Smoothness._image(self, x) + 1e-3}, "ρ|images"),
        ({"image": lambda self, x: self._image(self.flat(x))}, "counts no pass|scaled"),
        ({"term_squares": lambda self, s: np.abs(s[::3])}, "term_squares"),
        ({"weighted": lambda self, tau, *a, **k: Smoothness.weighted(self, 2 * tau, *a, **k)}, "not Στᵢ"),
        ({"traces": lambda self, metric: 1.1 * Smoothness.traces(self, metric)}, "freedom"),
        ({"dual_size": lambda self, *a: 0.5 * Smoothness.dual_size(self, *a)}, "gap inf"),
    ],
)
def test_a_form_that_breaks_its_contract_is_found(hooks, message):
    with pytest.raises(AssertionError, match=message):
        check_form(broken_form(**hooks))


@pytest.mark.parametrize(
    ("project", "message"),
    [
        (lambda self, x, metric: 0.99 * np.maximum(x, 0.0), "not P|orthogonal"),
        (lambda self, x, metric: np.maximum(x, 0.1), "P"),
        (lambda self, x, metric: np.abs(x), "orthogonal|acute"),
    ],
)
def test_a_cone_that_breaks_its_contract_is_found(project, message):
    cone = type("Broken", (qb.Cone,), {"project": project, "name": "broken"})()
    with pytest.raises(AssertionError, match=message):
        check_cone(cone, qb.StackedForm(np.random.default_rng(5).standard_normal((40, 8))))


def test_a_metric_that_breaks_its_contract_is_found():
    class Broken(qb.Metric):
        dim = 4

        def apply(self, x):
            return 2.0 * x

        def solve(self, v):
            return v / 3.0

    with pytest.raises(AssertionError, match="B⁻¹B is not the identity"):
        check_metric(Broken())


def test_a_metric_of_products_and_solves_alone_serves():
    class Shifted(qb.Metric):
        """B = D + vvᵀ by Sherman and Morrison."""

        def __init__(self, diagonal, v):
            self.d, self.v, self.dim = diagonal, v, len(v)

        def apply(self, x):
            return self.d * x + (self.v @ x) * self.v

        def solve(self, v):
            ahead, own = v / self.d, self.v / self.d
            return ahead - (self.v @ ahead) / (1.0 + self.v @ own) * own

    rng = np.random.default_rng(0)
    metric = Shifted(rng.uniform(1.0, 2.0, 8), rng.standard_normal(8))
    check_metric(metric)
    problem = problems()["dense, free"]
    for solver in ("auto", "accel-homgd", "homcg", "bregman"):
        truth(problem, qb.solve(problem, solver, metric, rel_gap=1e-9), 1e-9)


def test_check_solver_is_still_there():
    assert check_solver("homgd")["dense, free, identity"].endswith("iterations")


class Longer(qb.GraphForm):
    """ρ(2X) of a graph, by products alone: known images are still those of X."""

    def _image(self, x):
        return super()._image(2.0 * x)

    def _adjoint(self, weights):
        return 2.0 * super()._adjoint(weights)

    _evaluate = qb.TermForm._evaluate


class Doubled(DenseForm):
    """ρ(2x) of dense rows, by products alone."""

    def _image(self, x):
        return super()._image(2.0 * x)

    def _adjoint(self, weights):
        return 2.0 * super()._adjoint(weights)

    _evaluate = qb.TermForm._evaluate


@pytest.mark.parametrize(
    ("form", "c"),
    [
        (Longer(4, 1, [[0, 1], [1, 2], [2, 3]]), np.array([[1.0], [2.0], [-3.0], [0.0]])),
        (Doubled(np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 1.0]])), np.array([1.0, 2.0])),
    ],
)
def test_a_form_that_derives_from_a_proved_one_says_itself_that_it_is_proved(form, c):
    assert type(form).__mro__[1].rigorous
    assert not form.rigorous
    assert not qb.solve(qb.Problem(form, c)).proved
    assert not qb.solve(qb.Problem(form, c), solver="homgd").proved


@pytest.mark.parametrize("kind", [qb.DiskForm, qb.DaskForm, type(qb.GraphForm(2, 1, [[0, 1]], [2.0]))])
def test_kinds_of_the_package_that_derive_from_others_are_proved(kind):
    assert kind.rigorous
