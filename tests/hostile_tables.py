"""Files that nobody should send, and that must do no harm."""

from __future__ import annotations

import gzip
import io
import zipfile

ROWS = "".join(f"{k * 37 % 40 + 30 * (k % 2)}.5,{k % 7}.5,{'ab'[k % 2]}\n" for k in range(40))
"""Rows of a plain table: x, z, kind."""

SCRIPT = "<script>alert(1)</script>"


def bomb(megabytes: int) -> bytes:
    """A gzip file of a few kilobytes that unpacks to many megabytes."""
    member = gzip.compress(b"0,a\n" * 250_000, mtime=0)
    return gzip.compress(b"x,kind\n", mtime=0) + megabytes * member


def archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("t.csv", "x,kind\n" + ROWS)
    return buffer.getvalue()


def wide(n: int) -> bytes:
    head = ",".join(f"c{k}" for k in range(n)) + ",kind\n"
    lines = [",".join(str((k * row) % 11) for k in range(n)) + f",{row % 2}\n" for row in range(12)]
    return (head + "".join(lines)).encode()


def refused() -> dict[str, bytes]:
    """Files that hold no table, by name: each is answered by an error that says why."""
    plain = f"x,z,kind\n{ROWS}".encode()
    return {
        "empty.csv": b"",
        "blank.csv": b"\n \n\n",
        "header.csv": b"x,kind\n",
        "short.csv": b"x,kind\n1,a\n2,b\n",
        "nul.csv": b"x,kind\n" + b"\0" * 5000,
        "noise.csv": bytes(range(256)) * 40,
        "noise.parquet": bytes(range(256)) * 40,
        "noise.csv.gz": bytes(range(256)) * 40,
        "cut.csv.gz": gzip.compress(plain, mtime=0)[:-20],
        "cut.parquet": b"PAR1" + b"\0" * 100 + b"PAR1",
        "sheet.csv": archive(),
        "sheet.xlsx": archive(),
        "pickle.csv": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.",
        "page.html": b"<!doctype html><script>fetch('/api/describe')</script>" * 20,
        "picture.png": b"\x89PNG\r\n\x1a\n" + b"\0" * 500,
        "ragged.csv": b"x,z,kind\n" + b"1,2,a\n" * 20 + b"1,2,3,4,5,a\n" * 20,
        "twice.csv": b"x,x,kind\n" + b"1,2,a\n3,4,b\n" * 20,
        "latin.csv": "größe,kind\n".encode("latin-1") + b"1,a\n2,b\n" * 20,
        "quote.csv": b'x,kind\n"' + b"1,a\n" * 30,
        "one-class.csv": b"x,kind\n" + b"1.5,a\n2.5,a\n" * 20,
        "numbers.csv": b"x,y\n" + b"".join(b"%d.5,%d.25\n" % (k, k) for k in range(50)),
        "infinite.csv": b"x,kind\n" + b"inf,a\n1e308,b\n" * 20,
        "one-column.csv": b"kind\n" + b"a\nb\n" * 20,
        "bomb.csv.gz": bomb(20_000),
    }


def accepted() -> dict[str, bytes]:
    """Files that hold a table and something nasty: each is a table, and the nasty part is text."""
    plain = f"x,z,kind\n{ROWS}".encode()
    return {
        f"{SCRIPT}.csv": plain,
        "../../../etc/passwd": plain,
        "a" * 5000 + ".csv": plain,
        "CON": plain,
        "names.csv": f"{SCRIPT},=cmd|' /C calc'!A0,kind\n{ROWS}".encode(),
        "cells.csv": f"x,z,kind\n{ROWS}".replace(",a\n", f",{SCRIPT}\n").encode(),
        "formula.csv": f"x,z,kind\n{ROWS}".replace(",a\n", ",=cmd|' /C calc'!A0\n").encode(),
        "wide.csv": wide(10_000),
        "packed.csv.gz": gzip.compress(plain, mtime=0),
    }
