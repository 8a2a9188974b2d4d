"""Which commits are compared: the merge base by default, a twin where both are the same."""

import pytest

from quartbench.errors import ProblemError
from quartbench.gate.commits import Pair, choose, project, uncommitted


def test_named_commits_are_taken(checkout):
    a, b, _ = checkout.hashes
    assert choose(checkout.path, a[:10], b) == Pair(a, b)


def test_on_the_default_branch_the_parent_is_the_base(checkout):
    _, b, c = checkout.hashes
    assert choose(checkout.path) == Pair(b, c)


def test_on_another_branch_the_merge_base_is_the_base(checkout):
    _, b, _ = checkout.hashes
    checkout.git("checkout", "--quiet", "-b", "work", b)
    checkout.commit("d")
    e = checkout.commit("e")
    assert choose(checkout.path) == Pair(b, e)


def test_the_default_branch_of_the_remote_comes_first(checkout, tmp_path):
    a, _, _ = checkout.hashes
    checkout.git("branch", "trunk", a)
    checkout.git("clone", "--quiet", str(checkout.path), str(tmp_path / "clone"))
    checkout.path = tmp_path / "clone"
    checkout.git("remote", "set-head", "origin", "trunk")
    assert choose(checkout.path).base == a


def test_equal_commits_give_a_twin_that_is_always_the_same(checkout):
    _, _, c = checkout.hashes
    pair = choose(checkout.path, "HEAD", "main")
    assert pair.twin
    assert pair.head == c
    assert pair.base not in checkout.hashes
    assert checkout.git("rev-parse", f"{pair.base}^{{tree}}") == checkout.git("rev-parse", "HEAD^{tree}")
    assert choose(checkout.path, "HEAD", "main") == pair
    assert pair.names() == (f"{c[:8]} (again)", c[:8])
    assert checkout.git("rev-parse", "HEAD") == c, "nothing points at the twin"


def test_names_that_git_does_not_know_are_refused(checkout):
    with pytest.raises(ProblemError, match="unknown commit 'nowhere'"):
        choose(checkout.path, "nowhere")
    with pytest.raises(ProblemError, match="unknown commit 'nowhere'"):
        choose(checkout.path, None, "nowhere")


def test_a_first_commit_needs_a_base(checkout):
    checkout.git("branch", "--force", "first", checkout.hashes[0])
    checkout.git("checkout", "--quiet", "first")
    checkout.git("branch", "--force", "main", "first")
    with pytest.raises(ProblemError, match="has no parent"):
        choose(checkout.path)


def test_without_a_default_branch_a_base_is_needed(checkout):
    checkout.git("branch", "--move", "main", "other")
    with pytest.raises(ProblemError, match="found no default branch"):
        choose(checkout.path)


def test_unrelated_histories_are_told(checkout):
    checkout.git("checkout", "--quiet", "--orphan", "other")
    checkout.commit("d")
    with pytest.raises(ProblemError, match="have no common commit"):
        choose(checkout.path)


def test_the_project_is_found_from_below(checkout):
    assert project(checkout.path / "benchmarks").resolve() == checkout.path.resolve()


def test_outside_of_a_project_it_says_so(checkout, tmp_path):
    with pytest.raises(ProblemError, match=r"is in no clone \(git rev-parse: .*not a git repository"):
        project(tmp_path)
    checkout.git("rm", "--quiet", "asv.conf.json")
    with pytest.raises(ProblemError, match=r"asv\.conf\.json"):
        project(checkout.path)


def test_uncommitted_changes_of_the_package_are_noticed(checkout):
    assert not uncommitted(checkout.path)
    (checkout.path / "file").write_text("changed")
    assert not uncommitted(checkout.path), "not of the package"
    (checkout.path / "quartbench").mkdir()
    (checkout.path / "quartbench" / "new.py").write_text("")
    assert uncommitted(checkout.path)
