"""The console in a real browser, over the demonstration's own fleet, started once for all pages.

Screenshots are left in `build/console`."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Playwright,
    expect,
    sync_playwright,
)

from tests.debian import install

HERE = Path(__file__).parent
SHOTS = HERE.parents[1] / "build/console"
AXE = (HERE / "third_party/axe-core/axe.min.js").read_text()
TABLES = "demo-1,demo-blackjack,demo-roulette"
"""With cards and roads, with seats, with a wheel. All ten would keep a small machine busy."""
START_S = 120
"""Other tests run beside it."""
PATIENCE_MS = 60_000
SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Without them it looks for its maker's servers, which slows everything."""


@dataclass(frozen=True)
class Demo:
    """A running demonstration with its console."""

    address: str
    fleet: str
    round_id: str
    """A round of baccarat that is over, with bets in it: on a busy machine the first has none."""
    data: Path
    passwords: dict[str, str]
    tokens: dict[str, str]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("console")
    data, lines = folder / "data", folder / "lines"
    with lines.open("w") as file:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "services.cli.main", "demo"),
                *("--data", data, "--tables", TABLES, "--port", "0"),
            ],
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield _told(process, lines, data)
    finally:
        # The proof at its end is test_demo's; a second signal leaves it out.
        for number in (signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(4)
                break
        else:
            process.kill()
            process.wait()


def _told(process: subprocess.Popen[bytes], lines: Path, data: Path) -> Demo:
    """What it prints once its first round is over."""
    until = time.monotonic() + START_S
    while not (over := re.search(r"^(demo-1-\d+) ", text := lines.read_text(), re.MULTILINE)):
        assert process.poll() is None, text
        assert time.monotonic() < until, text
        time.sleep(0.1)
    console = re.search(r"^console at (http://\S+);", text, re.MULTILINE)
    fleet = re.search(r"^sabot takes calls at ([^;]+);", text, re.MULTILINE)
    assert console, text
    assert fleet, text
    return Demo(
        console[1],
        fleet[1],
        over[1],
        data,
        json.loads((data / "console_passwords.json").read_text()),
        json.loads((data / "tokens.json").read_text()),
    )


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as running:
        yield running


def chromium() -> str:
    """The system's own browser, installed where it is missing."""
    install("chromium", lambda: shutil.which("chromium") is not None)
    found = shutil.which("chromium")
    assert found is not None, "these tests need Debian's chromium: apt-get install chromium"
    return found


@pytest.fixture(scope="session")
def browser(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    running = playwright.chromium.launch(executable_path=chromium(), args=SWITCHES)
    yield running
    running.close()


@dataclass
class Visitor:
    """Somebody at a browser; whatever the browser complains of is kept."""

    page: Page
    demo: Demo
    name: str
    complaints: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Complaints that a test brings about on purpose, as patterns."""

    def open(self, path: str) -> None:
        self.page.goto(self.demo.address + path, wait_until="domcontentloaded")

    def shot(self, name: str, *, whole: bool = False) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png", full_page=whole)

    def check(self) -> None:
        """Nothing that somebody who sees little, or uses no mouse, would stumble over."""
        self.page.evaluate(AXE)
        found = self.page.evaluate(
            "() => axe.run(document, {resultTypes: ['violations'],"
            " runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']})"
        )
        told = [
            f"{one['id']}: {one['help']}: {node['html'][:200]} {node.get('failureSummary', '')}"
            for one in found["violations"]
            for node in one["nodes"][:3]
        ]
        assert not told, f"{self.page.url}\n" + "\n".join(told)

    def note(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text} ({self.page.url})")

    def note_error(self, error: Error) -> None:
        self.complaints.append(f"script: {error}")

    def judge(self) -> None:
        left = [
            one
            for one in self.complaints
            if not any(re.search(pattern, one) for pattern in self.expected)
        ]
        assert left == []


Visit = Callable[..., Any]
Windows = dict[tuple[str, str, str, int, int], Page]
"""Pages of a console that nobody looks at just now: by person, language, colours and size."""


@pytest.fixture(scope="session")
def windows() -> Windows:
    """Of whoever was here before."""
    return {}


@pytest.fixture
def visit(browser: Browser, demo: Demo, windows: Windows) -> Visit:
    """Opens a browser for somebody. `afresh`: with a session of its own."""
    return visiting(browser, demo, windows)


def visiting(browser: Browser, demo: Demo, windows: Windows) -> Visit:
    """The same, of any console."""

    @contextmanager
    def opened(
        name: str = "",
        language: str = "en",
        scheme: str = "dark",
        width: int = 1300,
        height: int = 850,
        *,
        afresh: bool = False,
    ) -> Iterator[Visitor]:
        # A browser of one's own costs more than most of what is looked at in it: who comes again is
        # still signed in.
        key = (name, language, scheme, width, height)
        page = windows.pop(key, None) if name and not afresh else None
        first = page is None
        if page is None:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="light" if scheme == "light" else "dark",
                locale=language,
            )
            context.set_default_timeout(PATIENCE_MS)
            page = context.new_page()
        visitor = Visitor(page, demo, name)
        page.on("console", visitor.note)
        page.on("pageerror", visitor.note_error)
        kept = False
        try:
            if not first:
                visitor.open("/")
            if name and page.url != f"{demo.address}/":  # left alone for long, it locked itself
                visitor.open("/sign-in")
                page.fill("input[name=name]", name)
                page.fill("input[name=password]", demo.passwords[name])
                page.click("button.main")
                page.wait_for_url(demo.address + "/")
            yield visitor
            visitor.judge()
            kept = bool(name) and not afresh
        finally:
            page.remove_listener("console", visitor.note)
            page.remove_listener("pageerror", visitor.note_error)
            if kept:
                page.goto("about:blank")  # what is live on it ends
                windows[key] = page
            else:
                page.context.close()

    return opened
