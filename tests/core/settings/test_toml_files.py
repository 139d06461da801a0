"""Settings in TOML files: which files count, in which order, and what is said of a mistake."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adatkg_core.errors import InputError
from adatkg_core.settings import choose_config, settings_of


@dataclass(frozen=True)
class Sample:
    host: str = "here"
    port: int = 1
    names: tuple[str, ...] = ()
    token: str = field(default="", repr=False)


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_the_file_of_the_flag_comes_on_top_of_that_of_the_variable_key_by_key(tmp_path: Path) -> None:
    usual = written(tmp_path, "usual.toml", "[kafka]\nhost = 'there'\nport = 2\n[stream]\nmodels = 'm'\n")
    given = written(tmp_path, "given.toml", "[kafka]\nport = 3\n")
    variables = {"ADATKG_CONFIG": str(usual)}
    assert settings_of(Sample, "kafka", None, {}) == {}
    assert settings_of(Sample, "kafka", None, variables) == {"host": "there", "port": 2}
    assert settings_of(Sample, "kafka", given, variables) == {"host": "there", "port": 3}
    assert settings_of(Sample, "kafka", given, {"ADATKG_CONFIG": ""}) == {"port": 3}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[kafak]\nhost = 'x'", r"unknown section \[kafak\]; known: kafka, stream, model, recall, train"),
        ("[kafka]\nhots = 'x'", r"\[kafka\] unknown key `hots`; known: host, port"),
        ("[kafka]\nport = '9'", r"\[kafka\] port = '9': must be a int"),
        ("[kafka]\nnames = 'x'", r"\[kafka\] names = 'x': must be a list of strings"),
        ("kafka = 3", r"\[kafka\] must be a table"),
        ("[kafka", "not TOML"),
    ],
)
def test_a_mistake_is_named_with_its_file(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=rf"mine\.toml: .*{says}"):
        settings_of(Sample, "kafka", written(tmp_path, "mine.toml", text), {})
    with pytest.raises(InputError, match=rf"mine\.toml: .*{says}"):
        settings_of(Sample, "kafka", None, {"ADATKG_CONFIG": str(tmp_path / "mine.toml")})


def test_a_secret_of_the_wrong_type_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="token: must be a str") as caught:
        settings_of(Sample, "kafka", written(tmp_path, "mine.toml", "[kafka]\ntoken = 123456"), {})
    assert "123456" not in str(caught.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"config nowhere\.toml: cannot be read"):
        settings_of(Sample, "kafka", None, {"ADATKG_CONFIG": "nowhere.toml"})


def test_settings_of_a_model_come_from_one_place(tmp_path: Path) -> None:
    model = str(written(tmp_path, "model.toml", "[train]\nepochs = 3\n[kafka]\n"))
    other = str(written(tmp_path, "other.toml", "[recall]\nenabled = false\n"))
    brokers = str(written(tmp_path, "brokers.toml", "[kafka]\nbootstrap = 'x:1'\n"))
    assert choose_config(None, {}) == "live"
    assert choose_config(None, {"ADATKG_CONFIG": model}) == model
    assert choose_config(None, {"ADATKG_CONFIG": brokers}) == "live"
    assert choose_config("tiny", {"ADATKG_CONFIG": model}) == "tiny"
    assert choose_config(other, {"ADATKG_CONFIG": model}) == other
    assert choose_config(brokers, {"ADATKG_CONFIG": model}) == model
    assert choose_config(brokers, {}) == "live"
