"""Is QuarticRegressor a scikit-learn estimator?"""

import numpy as np
import pytest

import quartbench as qb

sklearn = pytest.importorskip("sklearn")


@pytest.mark.filterwarnings("ignore:Skipping check")
def test_it_passes_the_checks_of_scikit_learn():
    from sklearn.utils.estimator_checks import check_estimator

    results = check_estimator(qb.QuarticRegressor(), on_skip=None)
    assert {one["check_name"] for one in results if one["status"] != "passed"} <= {"check_array_api_input"}
    assert len(results) > 40


def test_it_works_within_pipelines_and_searches():
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    t = np.linspace(-1.0, 1.0, 60)[:, None]
    model = make_pipeline(PolynomialFeatures(include_bias=False), qb.QuarticRegressor())
    found = GridSearchCV(model, {"polynomialfeatures__degree": [1, 2, 3]}, cv=3).fit(t, np.exp(t[:, 0]))
    assert found.best_params_ == {"polynomialfeatures__degree": 3}
    assert found.best_estimator_[-1].gap_ <= 1e-8


@pytest.mark.parametrize("intercept", [True, False])
def test_coefficients_are_those_of_the_function(intercept):
    rng = np.random.default_rng(0)
    X, y, weights = rng.standard_normal((80, 3)) + 5.0, rng.standard_normal(80), rng.uniform(0.5, 2.0, 80)
    model = qb.QuarticRegressor(fit_intercept=intercept).fit(X, y, weights)
    rows = np.column_stack([X, np.ones(80)]) if intercept else X
    fit = qb.l4_regression(rows, y, weights, rel_gap=1e-10)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_)[: rows.shape[1]], fit.x, rtol=1e-5)
    assert model.norm_ == pytest.approx(fit.fun, rel=1e-9)
