"""Tokens and passwords as they lie in files: one line, which a call or a connection carries."""

from __future__ import annotations

from pathlib import Path


class SecretUnusable(Exception):
    """A file holds no secret that can be sent; the message says why, and nothing of the secret."""


def secret_in(path: Path) -> str:
    """The secret in a file. Raises SecretUnusable, OSError."""
    try:
        text = path.read_text().strip()
    except UnicodeDecodeError:
        raise SecretUnusable(f"{path} holds no secret: it is no text") from None
    return sendable(text, str(path))


def sendable(text: str, where: str) -> str:
    """The same secret, if it can be sent: printable ASCII in one line. Raises SecretUnusable."""
    if not text:
        raise SecretUnusable(f"{where} holds no secret: it is empty")
    if not (text.isascii() and text.isprintable()):
        raise SecretUnusable(f"{where} holds no secret: that is one line of printable ASCII")
    return text
