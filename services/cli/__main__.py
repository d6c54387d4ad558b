"""`python -m services.cli`: the command `sabot` where it is not installed as one."""

from __future__ import annotations

from services.cli.main import app

if __name__ == "__main__":
    app(prog_name="sabot")
