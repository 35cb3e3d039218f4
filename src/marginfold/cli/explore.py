"""The command explore: a table seen through every method, in the browser."""

from __future__ import annotations

import gc
import getpass
import socket
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marginfold.cli.options import (
    Dates,
    Decimal,
    Drop,
    DropIds,
    Encoding,
    NoHeader,
    OptionalTarget,
    Sep,
    reading_of,
)
from marginfold.cli.output import show_line, show_notes
from marginfold.runtime.extras import require

if TYPE_CHECKING:
    from marginfold.explorer.table import Table

EXAMPLES = """\b
Examples:
  marginfold explore flowers.csv
  marginfold explore patients.parquet -t outcome --drop id
  marginfold explore wine --no-browser
  marginfold explore
Without a table the page asks for one. The target is guessed unless it is given, and can be changed
on the page, like the columns that are left out and the rows that are held out. The server listens
on this machine alone and the address is a key to it: who has it can read the table. Ctrl-C ends it.
"""


def explore(
    data: Annotated[
        str | None, typer.Argument(help="A table (CSV, Parquet), or a bundled set's name.")
    ] = None,
    target: OptionalTarget = None,
    drop: Drop = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    drop_ids: DropIds = False,
    dates: Dates = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; any that is free by default.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address and open nothing.")
    ] = False,
) -> None:
    """Look at a table through every method, in the browser."""
    require("starlette", "uvicorn", "pandas")
    from marginfold.explorer.server import Server

    def show() -> None:
        if not no_browser:
            webbrowser.open(server.address)

    def read() -> Table | None:
        gc.freeze()
        gc.enable()
        if data is None:
            return None
        from marginfold.explorer.table import Table, open_table

        reading = reading_of(sep, decimal, encoding, no_header, drop_ids, dates)
        wanted = None if target is None else reading.column(target)
        table = Table.of(open_table(data, reading), wanted, reading.columns(drop or []))
        show_notes(table.notes)
        if not is_there:
            show()
        return table

    # What is imported stays; to look through it for garbage takes 0.2 s of the begin and 0.3 s of
    # the end.
    gc.disable()
    is_there = data is None or Path(data).exists()  # else a set, or a name that was mistyped
    with Server(read, port) as server:
        show_line(f"open {server.address}")
        here = f"{getpass.getuser()}@{socket.gethostname()}"
        forwarded = f"ssh -L {server.port}:127.0.0.1:{server.port} {here}"
        show_line(f"from another machine, first there: {forwarded}")
        show_line("Ctrl-C ends it")
        if is_there:
            show()
        try:
            server.run()
        except KeyboardInterrupt:
            show_line("ended")
