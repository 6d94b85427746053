"""The roles file card of the Roles step, which uses a roles file or saves the roles of the form as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import shoal
from shoal.app.tab import Tab
from shoal.app.texts import in_labels, typed_path
from shoal.app.widgets import Entry, ask_to_replace, button, card, field, hint, row, text, upload

if TYPE_CHECKING:
    from shoal.app.work import Work

__all__ = ["save_roles", "show", "use_roles"]

MOST_OF_ROLES = 20_000_000  # maximum size of a roles file in bytes
ENDING = ".roles.toml"


def use_roles(work: Work, path: Path) -> None:
    """Use the roles in a file; refuse a file that does not fit the table."""
    inspection: Any = work.inspection
    roles = shoal.Roles.read(path, list(work.settings.roles))
    work.settings = work.settings.with_roles(roles, inspection.asked)


def save_roles(work: Work, path: Path) -> str:
    """Write the roles of the form to a file; return the command that masks the table like the form, with this file."""
    inspection, table = work.inspection, work.table
    if inspection is None:
        raise shoal.InputError("No table is open. Open one first.")
    request = work.settings.request(**table.csv, engine="local" if table.partial else None)
    roles = shoal.Roles.of(work.settings.parameters(), inspection.column_roles)
    roles.save(path, table.title)
    target = path.with_name(f"{path.name.removesuffix('.toml').removesuffix('.roles')}-masked{table.ending}")
    return request.command(table.title if table.dragged else str(table.path), str(target), str(path))


def show(tab: Tab) -> None:
    """Show the card for roles files."""
    with card("Roles file"):
        hint(
            "Contains the role, kind and codes for missing values of every column. Review it, edit it, and use it "
            "again here or with shoal mask --roles."
        )
        with row().style("align-items: flex-start"):
            _import(tab)
            _save(tab)


def _import(tab: Tab) -> None:
    def use(path: Path) -> None:
        try:
            use_roles(tab.work, path)
        except (shoal.ShoalError, OSError) as error:
            refuse(error)
        else:
            tab.changed()  # the form shows the new roles

    async def receive(event: Any) -> None:
        path = tab.folder.fresh(Path(event.file.name).name)
        path.touch(mode=0o600)
        await event.file.save(path)
        use(path)

    def too_large() -> None:
        refuse(f"Roles files of at most {MOST_OF_ROLES / 1e6:.0f} MB can be dragged in. Use the path of a larger one.")

    with _half():
        with field("Path of a roles file", "Replaces all roles, kinds, codes for missing values and importances."):
            entry = Entry("").style("width: 100%")
        button("Use this file", lambda: use(typed_path(entry.value)))
        upload(receive, MOST_OF_ROLES, too_large, label="Choose a roles file")
        refuse = _alert("roles-error")


def _save(tab: Tab) -> None:
    work = tab.work

    def save() -> None:
        path = typed_path(entry.value).absolute()
        if path.exists():
            ask_to_replace(tab, [path], lambda: write(path))
        else:
            write(path)

    def write(path: Path) -> None:
        try:
            command = save_roles(work, path)
        except (shoal.ShoalError, OSError) as error:
            refuse(error)
            return
        refuse("")
        saved.clear()
        with saved:
            text("p", f"Saved: {path}").style("overflow-wrap: anywhere")
            hint("This command masks the table with these roles and the other settings of the page.")
            text("pre", command, "s-code").props("tabindex=0 role=region aria-label=Command data-test=roles-command")

    with _half():
        with field("Save the roles to"):
            entry = Entry(str(work.table.folder / f"{Path(work.table.title).stem}{ENDING}")).style("width: 100%")
        button("Save the roles", save)
        refuse = _alert("save-error")
        saved = text("div", "").props("role=status data-test=roles-saved")


def _half() -> Any:
    return text("div", "").style("flex: 1 1 300px; min-width: 0")


def _alert(test: str) -> Any:
    """Add an alert; return a function that shows an error in it with the labels of the page, or hides it if empty."""
    element = text("p", "", "s-alert").props(f"role=alert data-test={test}").style("overflow-wrap: anywhere")
    element.set_visibility(False)

    def refuse(error: Exception | str) -> None:
        words = error.worded(in_labels) if isinstance(error, shoal.ShoalError) else str(error)
        element.set_text(words)
        element.set_visibility(bool(words))

    return refuse
