from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import Directive, Unclear, blocks_of, page_before
from tests.docs.command_lines import problem_with, simple_commands
from tests.docs.session import Session, check_document, look_up


def page(folder: Path, text: str) -> Path:
    written = folder / "page.md"
    written.write_text(text, "utf-8")
    return written


def test_blocks_come_with_their_place_title_and_directive(tmp_path: Path) -> None:
    text = """# Title

<!-- page: after other.md -->
```sh
ls
```

1. In a list:

    <!-- run: expect "a b", "c" -->
    ```python title="x.py"
    if True:
        print(1)
    ```
"""
    first, second = blocks_of(page(tmp_path, text))
    assert (first.line, first.language, first.body, first.directive) == (4, "sh", "ls\n", Directive())
    assert (second.line, second.title, second.body) == (11, "x.py", "if True:\n    print(1)\n")
    assert second.directive == Directive("expect", ("a b", "c"))
    assert page_before(first.page) == tmp_path.resolve() / "other.md"


@pytest.mark.parametrize(
    ("before", "opening", "says"),
    [
        ("", "```", "no language"),
        ("", "```console", "console: a block is one of"),
        ("<!-- run: later -->", "```sh", "`run: later` is no way"),
        ("<!-- run: parse only -->", "```sh", "no way to run a block"),
        ("<!-- run: output -->", "```sh", "only a text"),
        ('<!-- run: expect "x" -->', "```json", "cannot be run"),
        ("<!-- run: parse only, because -->", "```sh", "no way to run a block"),
    ],
)
def test_a_block_that_nobody_can_run_is_refused(tmp_path: Path, before: str, opening: str, says: str) -> None:
    with pytest.raises(Unclear, match=says):
        blocks_of(page(tmp_path, f"{before}\n{opening}\nls\n```\n"))


def test_a_script_is_taken_apart_into_commands() -> None:
    script = """X=1 adatkg tail g --count 5 | head -1 > out.txt   # a comment
adatkg ask g "Police (Nigeria)" \\
    "Make statement" && make docs
"""
    assert simple_commands(script) == [
        ["adatkg", "tail", "g", "--count", "5"],
        ["head", "-1"],
        ["adatkg", "ask", "g", "Police (Nigeria)", "Make statement"],
        ["make", "docs"],
    ]


@pytest.mark.parametrize(
    "command",
    [
        "adatkg datasets info icews14",
        ".venv/bin/adatkg models promote g v --force",
        "make reference",
        "docker compose run --rm trainer train /data/mine --models /models --graph mine",
        "docker compose up -d",
        "python -m benchmarks.retraining --out x",
        "ls -l",
    ],
)
def test_a_command_that_would_be_understood_passes(command: str) -> None:
    assert problem_with(command.split()) is None


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("adatkg datasets info icews14 --loud", "--loud"),
        ("adatkg datasets describe icews14", "describe"),
        ("adatkg ask g s", "relation"),
        ("adatkg tail g --count none", "--count"),
        ("make everything", "no target everything"),
        ("docker compose run --rm teacher train", "no service teacher"),
        ("docker compose run --rm trainer train --loud", "--loud"),
        ("python -m benchmarks.nothing", "no module"),
    ],
)
def test_a_command_that_would_be_refused_is_found_without_running_it(command: str, says: str) -> None:
    assert says in (problem_with(command.split()) or "").lower()


@pytest.mark.parametrize(
    "text",
    [
        '<!-- run: expect "there" -->\n```sh\necho here\n```\n',
        "```sh\nfalse\ntrue\n```\n",
        '<!-- run: fails with "here" -->\n```sh\necho here\n```\n',
        "```sh\necho one\n```\n<!-- run: output -->\n```text\ntwo\n```\n",
        "<!-- run: parse only, because of this test -->\n```sh\nadatkg fly\n```\n",
        "<!-- run: parse only, because of this test -->\n```sh\nif then\n```\n",
        '```toml\n[train]\nepochs = "two"\n```\n',
        "```toml\n[nothing]\n```\n",
        "```python\nraise ValueError\n```\n",
        "```json\n{1}\n```\n",
        '<!-- run: background until "never" -->\n```sh\necho now\n```\n',
    ],
)
def test_a_page_that_does_not_do_what_it_says_fails(tmp_path: Path, text: str) -> None:
    session = Session(tmp_path)
    with pytest.raises(Exception, match=r".") as failure:
        session.follow(page(tmp_path, text))
    session.close()
    assert not isinstance(failure.value, Unclear)


def test_a_reader_stays_in_the_folder_and_keeps_variables_and_files(tmp_path: Path) -> None:
    text = """
```sh
mkdir -p runs/here
cd runs/here
export COLOUR=blue
```
```python title="say.py"
import os
print("127.0.0.1:9092", os.environ["COLOUR"], os.getcwd())
```
<!-- run: expect "blue", "runs/here" -->
```sh
python say.py
```
<!-- run: output -->
```text
127.0.0.1:… blue …/runs/here
```
<!-- run: background until "up" -->
```sh
python -c "
import time
print('up', flush=True)
try:
    time.sleep(600)
except KeyboardInterrupt:
    pass"
```
<!-- run: again until "x x" -->
```sh
printf 'x ' >> count
cat count
```
"""
    session = Session(tmp_path)
    session.follow(page(tmp_path, text))
    assert session.close() == []
    assert not (Path(__file__).parents[2] / "runs" / "here").exists()


def test_documents_are_checked_by_what_reads_them(tmp_path: Path) -> None:
    (good,) = blocks_of(page(tmp_path, "```toml\n[train]\nepochs = 2\n[stream]\nlate = 'refuse'\n```\n"))
    check_document(good, tmp_path)
    (bad,) = blocks_of(page(tmp_path, "```toml\n[stream]\nlate = 'maybe'\n```\n"))
    with pytest.raises(Exception, match="late"):
        check_document(bad, tmp_path)
    (script,) = blocks_of(page(tmp_path, "<!-- run: parse only, because x y -->\n```python\nimport os\n```\n"))
    look_up(script)
