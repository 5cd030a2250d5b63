#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rejects wording that readers stumble over, in documentation, help texts and messages.

Each rule has a pattern, its reason, and where it applies: "heading", "text" and "diagram" (a code
block with arrows) of Markdown files; "message" for string literals of several words in the engine,
the bindings and the package (help, errors, warnings, records' docs, docstrings); "comment" for
comments in the same files. Code, inline code and link targets are ignored.

Usage: check_words.py [ROOT]. Prints each violation as `file:line: "words": reason`. Exit 0 when
clean.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Rule:
    pattern: str
    reason: str
    where: tuple[str, ...] = ("heading", "text", "message")


DOCS = ("heading", "text")
PROSE = ("heading", "text", "message", "comment")
_UNITS = "records|images|batches|bytes|seconds|microseconds|milliseconds|µs|us|ms|[kMG]i?B"
_PER = "record|batch|image|second|epoch|core|thread|rank|machine|file|pixel|frame|worker"
_RATE = (
    rf"(?<!many )(?<!bad )\b(?:number|bits|samples|{_UNITS}) an? (?:{_PER}|sample|channel|row)\b"
)
_BRITISH = (
    "colour|grey|centre|centring|neighbour|behaviour|favour|honour|licence|judgement|labell(?!edby)|cancelled"
    "|modelling|catalogue|artefact|(?:normal|optim|initial|serial|synchron|quant|real|organ|recogn"
    "|minim|maxim|util|vector|special|general|parallel|random|visual|summar|emphas)is(?:e[ds]?|ing|ation)"
)
_DTYPE = r"u?int\d+|b?float\d+|floats|bytes|pixels|integers"
_OF_DTYPE = "images|masks|boxes|tensors|labels|targets|keypoints|planes|clips|channels|arrays"
_STIFF_COMMENT = (
    r"\b(?:[Ww]hoever|[Ss]omebody|[Nn]obody|anew|besides?|one another|for ever|in vain)\b"
    r"|\ban own\b|\b(?:comes?|came) true\b"
    r"|\b(?:is|are|was|were|be|been) (?:asked (?:for|again)|put back|given up|wanted)\b"
    r"|\b(?:goes|go|went|gone) on\b(?! to\b)|\b(?:can|could) be had\b"
    r"|\bstands? (?:in(?! for)|at|on|next|before|after|below|there)\b"
)
RULES = (
    Rule(
        r"(?:^|[.:;] )Of (?!course)(?!\w+ing)",
        'begin with the thing itself, not with "Of ..."',
        (*DOCS, "comment"),
    ),
    Rule(r"\bmoving pictures?\b", "say video"),
    Rule(r"\bpictures?\b", "say image, or image and mask", DOCS),
    Rule(r"\b(?:an?|the|each|every) sound\b|\bsounds\b", "say audio, recording or clip", DOCS),
    Rule(r"\ban own\b", "say a separate, its own, custom"),
    Rule(
        r"\b(?:[Ww]hoever|[Ss]omebody|[Nn]obody)\b", "say the caller, the user, or use the passive"
    ),
    Rule(r"\banew\b", "say again"),
    Rule(r"\bbesides?\b", "say next to, alongside, also, apart from", DOCS),
    Rule(r"\bone another\b", "say each other", DOCS),
    Rule(
        r"\b(?:come|came|comes) true\b|\bin vain\b|\bforesee\w*\b",
        "say predict, prediction held, discarded",
    ),
    Rule(
        r"\b(?:is|are) none (?:of|that)\b|\bthat (?:is|are) none\b",
        "say invalid, unknown, not a ...",
    ),
    Rule(r"\bis no (?:number|name|folder|file)\b", "say is not a ...", DOCS),
    Rule(r"\bthat there (?:is|are) not\b", "say unknown or missing"),
    Rule(r"\b(?:has|have) not(?=[.,;:)]|\s+(?:is|are)\b)", "say lacks, or does not have"),
    Rule(r"\baffair\b", "say who is responsible, or what is affected"),
    Rule(r"\bmay be given again\b", "say repeatable"),
    Rule(
        r"\bstands? (?:in(?! for)|at|on|next|before|after|below|there)\b",
        "say is, is defined in, appears",
    ),
    Rule(r"\bfor ever\b", "say forever"),
    Rule(r"\b(?:is|are|was|were|be|been) asked (?:for|again)\b", "say requested, repeated"),
    Rule(r"\b(?:goes|go|went|gone) on\b(?! to\b)", "say continues, resumes"),
    Rule(r"\b(?:is|are|was|were|be) put back\b", "say restored, returned"),
    Rule(r"\b(?:is|are|was|were|be) given up\b", "say abandoned, stopped"),
    Rule(r"\b(?:is|are|was|were) wanted\b", "say requested, needed, expected"),
    Rule(r"\b(?:can|could) be had\b", "say available"),
    Rule(r"\bknows? no\b", "say unknown, not supported"),
    Rule(r"\b(?:lies?|stands?)$", "say is, or name the subject", ("heading",)),
    Rule(rf"\b\d[\d,.]* (?:{_UNITS}) an? (?:{_PER})\b", 'say "per" for rates', DOCS),
    Rule(_RATE, 'say "per" for rates', ("message",)),
    Rule(rf"(?i)\b\w*(?:{_BRITISH})\w*", "spell it the American way: color, gray, normalize"),
    Rule(r"\bpictures?\b", "say image, or image and mask", ("diagram",)),
    Rule(r"\b(?:behind|beside|told)\b", "say after, next to, given", ("diagram",)),
    Rule(
        r"\b(?:one|a) \w+ an? (?:frame|record|image|picture|row|batch)\b",
        'say "per" for rates',
        ("diagram",),
    ),
    Rule(rf"\b(?:{_OF_DTYPE}) of (?:{_DTYPE})\b", "say uint8 images, boxes in pixels", PROSE),
    Rule(r"\b(?:begins?|began) like (?:a|an|its)\b", "say it has the signature of ...", PROSE),
    Rule(r"\bfrom `\w+` on\b", "say starting at `...`", PROSE),
    Rule(r"\bfilled up\b", "say padded, extended", PROSE),
    Rule(r"\brecords? comes? (?:once|twice)\b", "say is delivered, occurs", PROSE),
    Rule(r"(?:^|[.:;] )Supported (?:is|are)\b", "name the subject first: ... are supported", PROSE),
    Rule(
        r"[Gg]uarded by (?:its|the) owner|\bowner guards\b",
        "say Not thread-safe, and whose mutex protects it",
        ("comment",),
    ),
    Rule(
        r"\b(?:at|on) (?:all|each|every) levels?\b|\ball levels give\b",
        "say SIMD level: other things have levels, too",
        PROSE,
    ),
    Rule(
        r"(?:^|[.]\s+)[A-Z]\w*Error HR\d{4}(?:(?:, | and )HR\d{4})*(?:\.(?:\s|$)|$)",
        "say when: Raises ... if ...",
        ("message",),
    ),
    Rule(
        r"(?:^|[.]\s+)(?:[A-Z]\w*Error|(?:[A-Z]\w*Error\s+)?HR\d{4})\s+(?:if|for|unless|while)\b",
        "say Raises ... if ...",
        ("message",),
    ),
    Rule(r"\b(?:is|are) (?:that|those) of\b", "say the same as, or name the thing", PROSE),
    Rule(r"\bas (?!a )(?:\S+ ){1,2}(?:has|have) (?:it|them)\b", "say as in ...", PROSE),
    Rule(
        r"\bTo be called\b|\b(?:still|are|is) to be (?:\w+ed|read|had|made)\b",
        "say must be called, not read yet, will be decoded",
        PROSE,
    ),
    # A dropped or vague predicate: what happens to the record, and to what extent, stays open.
    Rule(
        r"\b(?:or|can|could) leave (?:it|them) out\b",
        "say skip, omit or exclude",
        (*DOCS, "message"),
    ),
    Rule(r"\bgo(?:es)? beyond\b", "say extends beyond, exceeds"),
    Rule(
        r"\b(?:is|are|be) made again\b|\bmakes? (?:it|them|the \w+) again\b",
        "say recreate, rebuild, recompute, repeat",
    ),
    Rule(
        r"\bheader (?:promises|claims)\b|\bits header says\b",
        "say declares: a header makes no promise",
        ("message",),
    ),
    # German order or counting: a reader looks for the noun that is missing.
    Rule(
        r"\bso many (?:records|bytes|batches|machines|seconds|times|chunks|files|images|threads)\b"
        r"|\bat least so (?:long|many|much)\b",
        "say this number of, at least N",
        PROSE,
    ),
    Rule(r"\b(?:that|those) of the one\b|\bonce only\b", "name the thing; say only once", PROSE),
    Rule(r"\S[ ]+Args:", "begin a line: a refilled docstring lost its list", ("message",)),
    Rule(_STIFF_COMMENT, "say the caller, again, next to, requested, continues", ("comment",)),
)

_SKIPPED = {"build", ".git", ".venv", "__pycache__"}
# Markdown that is not prose: code, generated tables, link targets.
_NOT_PROSE = re.compile(
    r"^```.*?^```|^    .*?$|<!-- by .*?<!-- end -->|<!-- figures:.*?<!-- /figures -->|<!--.*?-->"
    r"|``.*?``|`[^`]*`|\]\([^)]*\)",
    re.MULTILINE | re.DOTALL,
)
_CXX_STRINGS = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+')
_CXX_COMMENT = re.compile(r"//.*")
_COMMENT = {".py": re.compile(r"(?:^|\s\s)#\s?(.*)"), ".cc": re.compile(r"(?:^|\s)//\s?(.*)")}
_COMMENT[".h"] = _COMMENT[".cc"]
_DIAGRAM = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
_DEFINES_WORDS = {"docs/reference/glossary.md"}  # our former terms and the standard ones


def blanked(match: re.Match[str]) -> str:
    """The same number of lines, without their words."""
    return re.sub(r"[^\n]", " ", match[0])


def passages(path: Path, text: str) -> Iterator[tuple[int, str, str]]:
    """The prose of a file: (line, where, text)."""
    if path.suffix == ".md":
        prose = _NOT_PROSE.sub(blanked, text)
        for number, line in enumerate(prose.split("\n"), 1):
            yield number, "heading" if line.startswith("#") else "text", line.lstrip("# -|*")
        for match in _DIAGRAM.finditer(text):
            if "─>" in match[1] or "<─" in match[1]:
                first = text.count("\n", 0, match.start(1)) + 1
                for number, line in enumerate(match[1].split("\n"), first):
                    yield number, "diagram", line
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.lineno, "message", node.value
    elif path.suffix in {".cc", ".h"}:
        code = _CXX_COMMENT.sub(blanked, text)
        for match in _CXX_STRINGS.finditer(code):
            words = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', match[0]))
            yield code.count("\n", 0, match.start()) + 1, "message", words
    if path.suffix in _COMMENT:
        for number, line in enumerate(text.split("\n"), 1):
            comment = _COMMENT[path.suffix].search(line)
            if comment and '"' not in line[: comment.start()]:
                yield number, "comment", comment[1]


def check(path: Path, text: str) -> Iterator[str]:
    if path.as_posix() in _DEFINES_WORDS:
        return
    for line, where, words in passages(path, text):
        if where == "message" and words.count(" ") < 2:
            continue
        for rule in RULES:
            found = re.search(rule.pattern, words.rstrip()) if where in rule.where else None
            if found:
                yield f'{path}:{line}: "{found[0].strip()}": {rule.reason}'


def files(root: Path) -> Iterable[Path]:
    yield from root.glob("*.md")
    for folder, suffixes in (
        ("docs", {".md"}),
        ("examples", {".md"}),
        ("headrace", {".cc", ".h"}),
        ("headrace-av", {".cc", ".h"}),
        ("bindings", {".cc", ".h"}),
        ("python", {".py"}),
        ("bench", {".py"}),
    ):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and "_test" not in path.stem and "_fuzz" not in path.stem:
                yield path


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = [
        breach
        for path in files(root)
        if not _SKIPPED.intersection(path.parts)
        for breach in check(path.relative_to(root), path.read_text(encoding="utf-8"))
    ]
    print("\n".join([*found, f"{len(found)} breaches"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
