"""A reader at work: the blocks of a page typed in order, in a folder that looks like the checkout."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from adatkg_core.runtime import default_cache
from adatkg_core.settings import config_from_dict, read_file
from adatkg_core.settings.toml_files import MODEL_SECTIONS
from streams.embedded_broker import choose_port, ensure_jars
from streams.kafka.connection import kafka_settings
from streams.settings import load_settings
from tests.docs.blocks import Block, blocks_of
from tests.docs.command_lines import REPOSITORY, problem_with, simple_commands

PATIENCE = 180.0  # seconds for what a reader would wait for, on a machine that has other work
_KAFKA, _WEB, _OTHER_WEB = 9092, 6066, 6067  # as the pages say


@dataclass
class Background:
    """A command in a terminal of its own."""

    block: Block
    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        """Its output so far."""
        return self.log.read_text("utf-8", errors="replace")


class Session:
    """Runs blocks; where a page says port 9092 or 6066 it uses free ones, so that other tests can run beside it."""

    def __init__(self, folder: Path) -> None:
        self._checkout = folder / "checkout"
        self._checkout.mkdir()
        for item in REPOSITORY.iterdir():
            if item.name not in (".git", ".venv", "runs", "models", "snapshots", "bundles"):
                (self._checkout / item.name).symlink_to(item)
        (self._checkout / ".venv").symlink_to(sys.prefix)
        cache = folder / "cache"
        cache.mkdir()
        ensure_jars()
        for shared in ("kafka", "compiled"):  # the same for everyone, and seconds or a download away
            (cache / shared).symlink_to(default_cache() / shared)
        self._ports = {port: choose_port("127.0.0.1") for port in (_KAFKA, _WEB, _OTHER_WEB)}
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("ADATKG_")}
        self._env |= {
            "ADATKG_CACHE": str(cache),
            "ADATKG_BOOTSTRAP": f"127.0.0.1:{self._ports[_KAFKA]}",
            "ADATKG_STREAM_WEB_PORT": str(self._ports[_WEB]),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "80",
        }
        self._here = self._checkout
        self._folder, self._count, self._printed = folder, 0, ""
        self._running: list[Background] = []

    def follow(self, page: Path) -> None:
        """Do all that the page says; a failure names the block."""
        for block in blocks_of(page):
            began = time.monotonic()
            if block.directive.kind == "output":
                self._compare(block)
            elif block.directive.kind == "parse only":
                look_up(block)
            elif block.language in ("sh", "python"):
                self._do(block)
            else:
                check_document(block, self._folder)
                self._save(block)
            print(f"{block.where}: {time.monotonic() - began:.1f} s")  # shown when a later one fails

    def close(self) -> list[str]:
        """End what runs in the background, as a reader does by Ctrl-C; returns what did not end well."""
        problems = []
        for one in reversed(self._running):
            if one.process.poll() is None:
                os.killpg(one.process.pid, signal.SIGINT)
            try:
                code = one.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(one.process.pid, signal.SIGKILL)
                code = one.process.wait()
            if code != 0:
                problems.append(f"{one.block.where} ended with code {code} by Ctrl-C:\n{one.said()[-2000:]}")
        self._running.clear()
        return problems

    # -- private ----------------------------------------------------------------------------------------------

    def _do(self, block: Block) -> None:
        directive = block.directive
        if block.language == "python" and block.title:
            self._save(block)
            return  # the page says when to run it
        if directive.kind == "background until":
            self._start(block)
            return
        if directive.kind == "after Ctrl-C":
            problems = self.close()
            assert not problems, "\n".join(problems)
        code, self._printed = self._run(block)
        deadline = time.monotonic() + PATIENCE
        while directive.kind == "again until" and not _holds(self._printed, directive.texts):
            assert time.monotonic() < deadline, f"{block.where}: waited in vain; it printed last:\n{self._printed}"
            time.sleep(0.5)
            code, self._printed = self._run(block)
        wanted = "an error" if directive.kind == "fails with" else "success"
        assert (code != 0) == (directive.kind == "fails with"), f"{block.where}: {wanted}? {code}\n{self._printed}"
        assert _holds(self._printed, directive.texts), f"{block.where}: no {directive.texts} in\n{self._printed}"

    def _run(self, block: Block) -> tuple[int, str]:
        where, env = self._folder / "where", self._folder / "env"
        done = subprocess.run(
            ["bash", str(self._script(block, f'trap \'pwd > "{where}"; env -0 > "{env}"\' EXIT'))],
            cwd=self._here,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
        # A reader stays in the folder and keeps the variables.
        self._here = Path(where.read_text("utf-8").rstrip("\n"))
        self._env = dict(pair.split("=", 1) for pair in env.read_text("utf-8").split("\0") if pair)
        return done.returncode, done.stdout.decode(errors="replace")

    def _start(self, block: Block) -> None:
        log = self._folder / f"background-{self._count}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["bash", str(self._script(block))],
                cwd=self._here,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        one = Background(block, process, log)
        self._running.append(one)
        deadline = time.monotonic() + PATIENCE
        while not _holds(one.said(), block.directive.texts):
            assert process.poll() is None, f"{block.where} ended by itself:\n{one.said()}"
            assert time.monotonic() < deadline, f"{block.where}: no {block.directive.texts} in\n{one.said()}"
            time.sleep(0.2)

    def _script(self, block: Block, first: str = "") -> Path:
        """The block as a file; every command of it must succeed."""
        self._count += 1
        body = self._with_own_ports(block.body)
        if block.language == "python":
            program = self._folder / f"block-{self._count}.py"
            program.write_text(body, "utf-8")
            body = f'python "{program}"\n'
        script = self._folder / f"block-{self._count}.sh"
        script.write_text(f"{first}\nset -eo pipefail\n{body}", "utf-8")
        return script

    def _with_own_ports(self, text: str) -> str:
        for said, own in self._ports.items():
            text = text.replace(str(said), str(own))
        return re.sub(r"\badatkg broker\b(?!.*--port)", f"adatkg broker --port {self._ports[_KAFKA]}", text)

    def _save(self, block: Block) -> None:
        if block.title:
            (self._here / block.title).write_text(self._with_own_ports(block.body), "utf-8")

    def _compare(self, block: Block) -> None:
        printed = _plain(self._printed)
        for line in filter(None, map(str.strip, block.body.splitlines())):
            pattern = ".*".join(re.escape(_plain(part)) for part in line.split("…"))
            assert re.search(pattern, printed), f"{block.where}: no line {line!r} in\n{self._printed}"


def look_up(block: Block) -> None:
    """See that a block which is not run could be: its syntax, and every command of ours in it."""
    if block.language == "python":
        compile(block.body, block.where, "exec")
        return
    checked = subprocess.run(["bash", "-n"], input=block.body.encode(), capture_output=True, check=False)
    assert checked.returncode == 0, f"{block.where}: {checked.stderr.decode()}"
    for words in simple_commands(block.body):
        problem = problem_with(words)
        assert problem is None, f"{block.where}: {' '.join(words)}: {problem}"


def check_document(block: Block, folder: Path) -> None:
    """See that a file which a reader shall write is one that the program reads; it is put into this folder."""
    if block.language == "json":
        json.loads(block.body)
    elif block.language == "yaml":
        yaml.safe_load(block.body)
    elif block.language == "toml":
        path = folder / "page.toml"
        path.write_text(block.body, "utf-8")
        load_settings(path, {}, {})
        kafka_settings(path, {})
        shaping = {name: section for name, section in read_file(path).items() if name in MODEL_SECTIONS}
        config_from_dict(shaping, block.where)


def _holds(text: str, wanted: Iterable[str]) -> bool:
    plain = _plain(text)
    return all(_plain(one) in plain for one in wanted)


def _plain(text: str) -> str:
    """Without colours, and with one space where there are several: tables are as wide as their cells."""
    return re.sub(r" +", " ", re.sub(r"\x1b\[[0-9;]*m", "", text)).strip()
