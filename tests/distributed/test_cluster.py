"""Rows on a Dask cluster: the answers of one process, images that stay away, bad blocks named."""

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask.array

import quartbench as qb
from quartbench.distributed import pieces
from quartbench.testing import check_form

from .clusters import KINDS, blocks_of, check_methods, linear, local, rows_of


@pytest.fixture(scope="module")
def client():
    with local(processes=False) as client:
        yield client


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_on_a_cluster_keeps_the_contract(client, kind):
    rows, rank = rows_of(kind)
    check_form(qb.DaskForm(blocks_of(rows, rank), client, rank), solve=False)


def test_methods_give_the_answer_of_one_process(client):
    check_methods(client, "rank 3", ("auto", "homcg"))


@pytest.mark.parametrize("kind", ["directory", "dask array"])
def test_blocks_come_from_files_and_dask_arrays(client, tmp_path, kind):
    rows, _ = rows_of("dense")
    if kind == "directory":
        for i, block in enumerate(blocks_of(rows, 1)):
            np.save(tmp_path / f"{i}.npy", block)
        form = qb.DaskForm(tmp_path, client)
    else:
        form = qb.DaskForm(dask.array.from_array(rows, chunks=(50, 5)), client)
    x = linear()
    assert form.value(x) == pytest.approx(qb.StackedForm(rows).value(x), rel=1e-12)
    np.testing.assert_allclose(form.image(x), rows @ x, rtol=1e-12)
    picked = np.array([0, 1, 49, 77, 119])
    np.testing.assert_array_equal(form.term_rows(picked), rows[picked])


def test_images_stay_on_the_workers(client):
    rows, _ = rows_of("dense", terms=4000)
    form = qb.DaskForm(blocks_of(rows, 1, 2), client)
    x = linear()
    value, _, image = form.evaluate(x)
    assert isinstance(image, pieces.Pieces)
    # Two blocks: x goes to each, and value and gradient come back.
    assert (form.rounds, form.bytes) == (1, 2 * 8 * 12 + 2 * (8 + 8 * 12))
    assert form.value_from_image(2.0 * image - 0.5 * image) == pytest.approx(1.5**4 * value, rel=1e-12)
    assert form.rounds == 2
    found = qb.solve(qb.Problem(form, x), "homcg", rel_gap=1e-8)
    assert found.success


def test_auto_takes_one_round_for_a_hessian_where_it_is_small(client):
    rows, _ = rows_of("dense", terms=2000, columns=80)
    problem, same = (qb.Problem(form, linear(80)) for form in (qb.DaskForm([rows], client), qb.StackedForm(rows)))
    found = qb.solve(problem, rel_gap=1e-8)
    assert "homnewton, as some" in found.message
    assert found.rounds < qb.solve(problem, "homnewton-cg", rel_gap=1e-8).rounds
    assert found.fun == pytest.approx(qb.solve(same, rel_gap=1e-10).fun, rel=1e-8)


def test_weights_may_change_between_two_calls(client):
    rows, _ = rows_of("dense")
    form, weights = qb.DaskForm(blocks_of(rows, 1), client), np.ones(120)
    first = form.adjoint(weights)
    weights *= 2.0
    np.testing.assert_allclose(form.adjoint(weights), 2.0 * first)
    gram = form.weighted_gram(weights)
    weights *= 3.0
    np.testing.assert_allclose(form.weighted_gram(weights), 3.0 * gram)


def test_twins_count_their_own_rounds(client):
    form = qb.DaskForm(blocks_of(*rows_of("dense")), client)
    twin = form.twin()
    twin.value_and_gradient(linear())
    assert (form.rounds, twin.rounds) == (0, 1)
    form.counting_with(twin).value_and_gradient(linear())
    assert (form.rounds, twin.rounds) == (0, 2)


def test_pieces_are_arrays_to_numpy(client):
    rows, _ = rows_of("dense")
    form = qb.DaskForm(blocks_of(rows, 1), client)
    image = form.image(linear())
    array = rows @ linear()
    np.testing.assert_allclose(np.ldexp(np.abs(-image), 3), 8.0 * np.abs(array))
    np.testing.assert_array_equal(np.full_like(image, 2.0), np.full(120, 2.0))
    np.testing.assert_allclose(np.maximum.reduce(image), array.max())
    np.testing.assert_allclose(np.concatenate([image, image]), np.concatenate([array, array]))
    np.testing.assert_allclose(image + array, 2.0 * array)
    same = image
    image *= 2.0
    image -= 0.5
    assert image is same
    np.testing.assert_allclose(image, 2.0 * array - 0.5)
    assert (len(image), image.shape) == (120, (120,))


def test_what_led_to_an_image_stays_short(client, monkeypatch):
    monkeypatch.setattr(pieces, "DEEP", 8)
    rows, _ = rows_of("dense")
    form, same = qb.DaskForm(blocks_of(rows, 1), client), qb.StackedForm(rows)
    x, d = np.random.default_rng(5).standard_normal((2, 12))
    image, before, direction = form.image(x), form.image(d), form.image(d)
    for _ in range(2 * pieces.DEEP):
        image, _ = form.line_behind(direction, image, before, 0.01)
        x = (x + 0.01 * d) / 1.01
        assert image.depth <= pieces.DEEP
    assert form.value_from_image(image) == pytest.approx(same.value(x), rel=1e-12)
    for _ in range(2 * pieces.DEEP):
        image = 0.5 * (image - 0.01 * direction) + image / 3.0
        x = 0.5 * (x - 0.01 * d) + x / 3.0
        assert image.depth <= pieces.DEEP + 3
    assert form.value_from_image(image) == pytest.approx(same.value(x), rel=1e-12)
    assert (image * image).point is None
    assert (1.0 / image).point is None
    assert np.abs(image).point is None


def test_inverse_problems_have_the_answer_of_one_process(client, tmp_path):
    rows, _ = rows_of("dense")
    truth, noise = np.random.default_rng(6).standard_normal((2, 12))
    np.save(tmp_path / "rows.npy", rows)
    values = [
        qb.inverse.solve(qb.inverse.Problem(form, (rows @ truth) ** 2 + 1.0), "newton", start=truth + 0.1 * noise).fun
        for form in (qb.StackedForm(rows), qb.DiskForm(tmp_path), qb.DaskForm(blocks_of(rows, 1), client))
    ]
    assert values[1:] == pytest.approx([values[0]] * 2, rel=1e-6)


@pytest.mark.slow
def test_nearly_dependent_rows_are_proved_on_the_workers(client):
    rows, _ = rows_of("dense")
    rows[:, 1] = rows[:, 0] + 1e-7 * rows[:, 1]
    problem = qb.Problem(qb.DaskForm(blocks_of(rows, 1), client), rows.T @ np.ones(len(rows)))
    found = qb.solve(problem, rel_gap=1e-6)
    assert found.success
    assert qb.certify(problem, found.x, rel_gap=1e-6).proved


def test_bad_blocks_are_named(client, tmp_path):
    rows, _ = rows_of("dense")
    first, second, third = blocks_of(rows, 1)
    bad = second.copy()
    bad[4, 2] = np.inf
    with pytest.raises(qb.ProblemError, match=r"^block 1: rows must be finite, found NaN or infinity in row 4$"):
        qb.DaskForm([first, bad, third], client)
    np.save(tmp_path / "bad.npy", bad)
    with pytest.raises(qb.ProblemError, match=r"^block 0 \('.*bad.npy'\): rows must be finite.* in row 4$"):
        qb.DaskForm(tmp_path, client)
    with pytest.raises(qb.ProblemError, match=r"one width, found 11 columns in block 1 and 12 in block 0"):
        qb.DaskForm([first, second[:, 1:]], client)
    with pytest.raises(qb.ProblemError, match=r"block 0: rows must come in blocks of rank=7"):
        qb.DaskForm([first], client, 7)
    with pytest.raises(qb.ProblemError, match="a list of arrays or files"):
        qb.DaskForm(3.0, client)
    with pytest.raises(qb.ProblemError, match=r"client must be a distributed.Client, found str"):
        qb.DaskForm([first], "tcp://127.0.0.1:1")
    rows[:, 3] = 0.0
    with pytest.raises(qb.ProblemError, match="no term sees coordinate 3"):
        qb.Problem(qb.DaskForm([rows], client), linear())


def test_a_lost_scheduler_is_an_error_with_the_best_point():
    rows, _ = rows_of("dense")
    with local(processes=False) as client:
        form = qb.DaskForm(blocks_of(rows, 1), client, timeout=20.0)
        problem = qb.Problem(form, linear())

        def close(state):
            if state.iteration == 3:
                client.cluster.close()

        with pytest.raises(qb.LostError, match="out of reach") as caught:
            qb.solve(problem, "homgd", metric="identity", rel_gap=1e-12, callback=close)
    same = qb.Problem(qb.StackedForm(rows), linear())
    assert same.value(caught.value.x) < 0.9 * qb.solve(same).fun < 0.0
