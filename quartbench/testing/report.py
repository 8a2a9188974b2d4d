"""What did a battery find? A dictionary that prints as a table."""

from __future__ import annotations


class Report(dict[str, str]):
    """What was found, by where: ``print`` shows a line for each."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join([self.title, *(f"  {where:<{width}}  {found}" for where, found in self.items())])
