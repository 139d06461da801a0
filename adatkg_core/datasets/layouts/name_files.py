"""Quadruples of names with dates: TLogic, TNTComplEx, DE-SimplE, and HyTE's intervals."""

from __future__ import annotations

from pathlib import Path

from adatkg_core.datasets.layouts.names import plain_names, read_names
from adatkg_core.datasets.layouts.parts import id_file, part_files
from adatkg_core.datasets.layouts.quadruples import Part
from adatkg_core.datasets.layouts.reading import Reading, put_together
from adatkg_core.datasets.layouts.text_files import bad_line, numbered_lines, read_bytes


def read_name_files(folder: Path) -> Reading:
    """Read such a folder; ids are those of its id files, else names are numbered as they come."""
    entities = _Numbering(id_file(folder, "entity2id"))
    relations = _Numbering(id_file(folder, "relation2id"))
    parts = [_read_part(path, entities, relations) for path in part_files(folder)]
    return put_together(folder, plain_names(tuple(entities.ids)), plain_names(tuple(relations.ids)), parts)


class _Numbering:
    """Names and their ids: fixed by a file, or given as the names come."""

    def __init__(self, path: Path | None) -> None:
        self.ids: dict[str, int] = {} if path is None else {name: i for i, name in enumerate(read_names(path))}
        self._path = path

    def __call__(self, path: Path, line: int, name: str) -> int:
        """The id of a name."""
        known = self.ids.get(name)
        if known is not None:
            return known
        if not name:
            bad_line(path, line, "a name is empty", "write subject, relation, object and time separated by tabs")
        if self._path is not None:
            bad_line(path, line, f"{name!r} is not in {self._path.name}", "add it there, or remove the id files")
        return self.ids.setdefault(name, len(self.ids))


def _read_part(path: Path, entities: _Numbering, relations: _Numbering) -> Part:
    lines: list[int] = []
    ids: list[tuple[int, int, int]] = []
    times: list[str] = []
    fifth: list[str] = []
    for number, line in numbered_lines(path, read_bytes(path)):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) not in (4, 5):
            bad_line(
                path,
                number,
                f"{len(fields)} columns, expected 4 or 5",
                "write subject, relation, object and time separated by tabs",
            )
        subject, relation, object_ = fields[:3]
        ids.append(
            (entities(path, number, subject), relations(path, number, relation), entities(path, number, object_))
        )
        times.append(fields[3])
        fifth += fields[4:]
        lines.append(number)
    return Part.of_texts(path, lines, ids, times, fifth)
