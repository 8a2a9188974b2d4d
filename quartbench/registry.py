"""How is something found by its name? Registered by a decorator here, or by an installed package's entry point.

A name may carry settings, as in ``"homgd:step=fixed"``.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

from quartbench.errors import ProblemError, unknown_name

#: Words that mean something else than themselves as the value of a setting.
WORDS = {"true": True, "false": False}


def assignment(text: str, where: str) -> tuple[str, Any]:
    """Return the name and the value of ``"name=value"``: a number where it reads as one, else a word."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise ProblemError(f"{where}: arguments are written name=value, found {text!r}")
    for read in (int, float):
        try:
            return name, read(value)
        except ValueError:
            pass
    return name, value


def name_and_settings(text: str, where: str) -> tuple[str, dict[str, Any]]:
    """Return the two parts of ``"name:setting=value,…"``; where there are no settings all of it is the name."""
    name, colon, settings = text.rpartition(":")
    if not colon or "=" not in settings:
        return text, {}
    given = (assignment(part, where) for part in settings.split(","))
    return name, {key: WORDS.get(value, value) if isinstance(value, str) else value for key, value in given}


def require_settings(name: str, settings: Mapping[str, Any], make: Callable[..., Any]) -> None:
    """Raise where a setting is none that ``make`` takes, with the nearest that it does."""
    parameters = inspect.signature(make).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        for setting in settings:
            if setting not in parameters:
                raise unknown_name(f"setting of {name}", setting, parameters)


class Registry(Mapping):
    """Classes by name. Those of installed packages are read from an entry point group when first asked for.

    Parameters
    ----------
    kind : str
        What is registered, for messages: "form", "cone", "solver".
    group : str
        The entry point group through which an installed package offers its own.
    accept : callable, optional
        Given (class, where from), returns it, or raises where it cannot be one.
    """

    def __init__(self, kind: str, group: str, accept: Callable[[Any, str], Any] = lambda found, where: found) -> None:
        self.kind, self.group = kind, group
        self._accept = accept
        self._found: dict[str, Any] = {}
        self._read = False

    def register(self, name: str, found: Any) -> Any:
        """Register under a name, which replaces what had it, and return what was registered."""
        self._found[name] = found
        return found

    def find(self, name: str) -> Any:
        """Return what has this name; raise with the nearest name where nothing has."""
        found = self._all()
        if not isinstance(name, str) or name not in found:
            raise unknown_name(self.kind, name, found)
        return found[name]

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._all()))

    def __len__(self) -> int:
        return len(self._all())

    def __contains__(self, name: object) -> bool:
        return name in self._all()

    def own(self, name: str) -> Any:
        """Return what is registered so far under a name, None where nothing is; reads no entry points."""
        return self._found.get(name)

    def _all(self) -> dict[str, Any]:
        if not self._read:
            self._read = True
            for entry in entry_points(group=self.group):
                try:
                    found = self._accept(entry.load(), f"entry point {entry.name!r}")
                except Exception as error:
                    # A broken package of someone else must not take ours with it.
                    warnings.warn(
                        f"the {self.kind} {entry.name!r} of {entry.value} cannot be loaded: {error}", stacklevel=3
                    )
                else:
                    if entry.name not in self._found:
                        self.register(entry.name, found)
        return self._found
