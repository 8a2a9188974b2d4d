"""ℓ4 regression as a scikit-learn estimator; needs the extra ``sklearn``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("QuarticRegressor needs scikit-learn 1.6: pip install 'quartbench[sklearn]'") from error

from .l4 import l4_regression


class QuarticRegressor(RegressorMixin, BaseEstimator):
    """Linear regression that minimises Σ wᵢ(yᵢ − ⟨xᵢ,β⟩ − β₀)⁴, with a certified gap.

    Large residuals count most: for fits whose worst error matters, not for data with outliers.

    Parameters
    ----------
    fit_intercept : bool
        Whether there is a constant β₀.
    rel_gap : float
        The relative gap of the norm to certify.
    max_iter : int
        The most iterations.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    gap_ : float
        Certified: the ℓ4 norm of the residuals is within this share of the least.
    norm_ : float
        That norm.
    n_iter_ : int
    result_ : Regression
        All that :func:`quartbench.l4_regression` says.

    Examples
    --------
    >>> import numpy as np, quartbench as qb
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = qb.QuarticRegressor().fit(X, X[:, 0] ** 2)
    >>> print(f"{model.coef_[0]:.4f} {model.intercept_:.4f}", model.gap_ < 1e-8)
    1.0000 -0.1471 True
    """

    def __init__(self, *, fit_intercept: bool = True, rel_gap: float = 1e-10, max_iter: int = 1000) -> None:
        self.fit_intercept = fit_intercept
        self.rel_gap = rel_gap
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> QuarticRegressor:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Nonnegative weights of the fourth powers: a sample of weight 2 counts as two.
        """
        X, y = validate_data(self, X, y, accept_sparse=["csr", "csc"], dtype=np.float64, y_numeric=True)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        if weights is not None:
            X, y, weights = X[weights > 0.0], y[weights > 0.0], weights[weights > 0.0]
        centre = np.zeros(X.shape[1])
        rows = X
        if self.fit_intercept:
            # About their means columns are as independent of the constant as they can be; sparse ones stay sparse.
            if not sp.issparse(X):
                centre = np.average(X, axis=0, weights=weights)
            ones = np.ones((X.shape[0], 1))
            rows = sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X - centre, ones])
        self.result_ = l4_regression(rows, y, weights, rel_gap=self.rel_gap, max_iter=self.max_iter)
        self.coef_ = self.result_.x[: X.shape[1]]
        self.intercept_ = float(self.result_.x[-1] - centre @ self.coef_) if self.fit_intercept else 0.0
        self.gap_, self.norm_, self.n_iter_ = self.result_.gap, self.result_.fun, max(1, self.result_.nit)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return ⟨xᵢ,β⟩ + β₀ for every row of X."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=np.float64, reset=False)
        return X @ self.coef_ + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
