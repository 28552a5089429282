"""Reads the little of TOML and YAML that settings need, where the interpreter or PyYAML does not do it."""
import re
from typing import Any, Dict, List, Optional, Tuple

_NUMBER = re.compile(r"[+-]?(\d+|\d+\.\d+([eE][+-]?\d+)?|\d+[eE][+-]?\d+)\Z")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


_DIGITS = 4000  # Python itself refuses some more, without saying where they stand


def _number(text: str, where: str) -> Any:
    if len(text) > _DIGITS:
        raise ValueError(f"{where}: a number of {len(text)} characters is too long")
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


# ---- TOML ---------------------------------------------------------------------------------------------------

def read_toml_table(text: str, path: str, table: str) -> Dict[str, Any]:
    """The keys of one table ("tool.tare"; "": those above all tables). ValueError with the place of what is wrong."""
    try:
        import tomllib  # from Python 3.11 on
    except ImportError:
        return small_toml_table(text, path, table)
    try:
        found: Any = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None
    for name in table.split(".") if table else ():
        found = found.get(name, {}) if isinstance(found, dict) else {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {key: value for key, value in pairs if not isinstance(value, dict)}


def small_toml_table(text: str, path: str, table: str) -> Dict[str, Any]:
    """The same by a reader that knows strings, numbers and switches, and passes other tables over."""
    found: Dict[str, Any] = {}
    inside = table == ""
    skip = _Skipper()
    for number, line in enumerate(text.splitlines(), 1):
        open_before = skip.open
        skip.feed(line)
        bare = line.strip()
        if open_before or not bare or bare.startswith("#"):
            continue
        if bare.startswith("["):
            inside = _header(bare) == table
            continue
        if not inside:
            continue
        key, equals, value = bare.partition("=")
        if not equals:
            raise ValueError(f"{path}:{number}: a setting is written as name = value")
        name = key.strip().strip("\"'")
        if name in found:
            raise ValueError(f"{path}:{number}: {name} is set twice")
        if "." in name or skip.open:
            continue  # a table or a list: no setting of ours
        found[name] = _toml_value(value.strip(), f"{path}:{number}")
    return found


def _header(line: str) -> Optional[str]:
    match = re.match(r"\[\s*([^\[\]]+?)\s*\]\s*(#.*)?\Z", line)
    if not match:
        return None
    return ".".join(part.strip().strip("\"'") for part in match.group(1).split("."))


class _Skipper:
    """Whether a line ends inside a list, an inline table or a text of several lines."""

    def __init__(self) -> None:
        self.depth = 0
        self.quote = ""

    @property
    def open(self) -> bool:
        return self.depth > 0 or bool(self.quote)

    def feed(self, line: str) -> None:
        at = 0
        header = not self.open and line.lstrip().startswith("[")
        while at < len(line):
            if self.quote:
                at = self._to_end_of_text(line, at)
                continue
            character = line[at]
            if character == "#":
                break
            if character in "\"'":
                self.quote = character * 3 if line.startswith(character * 3, at) else character
                at += len(self.quote)
                continue
            if not header:
                self.depth += (character in "[{") - (character in "]}")
            at += 1
        if len(self.quote) == 1:
            self.quote = ""  # such a text ends with its line
        self.depth = max(self.depth, 0)

    def _to_end_of_text(self, line: str, at: int) -> int:
        while at < len(line):
            if line[at] == "\\" and self.quote[0] == '"':
                at += 2
                continue
            if line.startswith(self.quote, at):
                at += len(self.quote)
                self.quote = ""
                return at
            at += 1
        return at


def _toml_value(text: str, where: str) -> Any:
    if text[:1] in ("'", '"'):
        return _toml_text(text, where)
    bare = text.partition("#")[0].strip()
    if bare in ("true", "false"):
        return bare == "true"
    plain = bare.replace("_", "")
    if _NUMBER.match(plain):
        return _number(plain, where)
    if bare[:1] in ("[", "{"):
        return None  # no setting is a list; whoever wants one of this name says so
    raise ValueError(f"{where}: {bare or 'nothing'} is no \"text\", number, true or false")


def _toml_text(text: str, where: str) -> str:
    quote, out, at = text[0], [], 1
    while at < len(text):
        character = text[at]
        if character == quote:
            rest = text[at + 1:].strip()
            if rest and not rest.startswith("#"):
                raise ValueError(f"{where}: {rest!r} follows the value")
            return "".join(out)
        if character == "\\" and quote == '"':
            at += 1
            escape = text[at:at + 1]
            if escape not in _ESCAPES:
                raise ValueError(f"{where}: \\{escape} is no escape that is known here")
            character = _ESCAPES[escape]
        out.append(character)
        at += 1
    raise ValueError(f"{where}: the text has no closing {quote}")


# ---- YAML ---------------------------------------------------------------------------------------------------

# What PyYAML lets through from values that do not fit their tag ("!!int", "!!bool x") and from deep nesting.
_YAML_FAILS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)


def read_yaml(text: str, path: str) -> Dict[str, Any]:
    """A mapping, by PyYAML when it is there. ValueError with the place of what is wrong."""
    try:
        import yaml
    except ImportError:
        return small_yaml(text, path)
    try:
        found = yaml.safe_load(text)
    except _YAML_FAILS + (yaml.YAMLError,) as error:
        raise ValueError(f"{path} cannot be read as YAML: {error!r}" if isinstance(error, _YAML_FAILS)
                         else f"{path}: {error}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no mapping but {type(found).__name__}")
    return found


def small_yaml(text: str, path: str) -> Dict[str, Any]:
    """Mappings of plain values, nested by indentation; all else is refused by line."""
    root: Dict[str, Any] = {}
    stack: List[Tuple[int, Dict[str, Any]]] = [(-1, root)]
    pending: Optional[Tuple[int, Dict[str, Any], str]] = None  # a key whose mapping may follow
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}:{number}"
        bare = _without_comment(line)
        if not bare.strip() or bare.strip() == "---":
            continue
        indent = len(bare) - len(bare.lstrip(" "))
        if bare[indent] == "\t":
            raise ValueError(f"{where}: a tab cannot indent")
        if pending and indent > pending[0]:
            inner: Dict[str, Any] = {}
            pending[1][pending[2]] = inner
            stack.append((indent, inner))
        while stack[-1][0] > indent:
            stack.pop()
        if stack[-1][0] == -1 and not root:
            stack.append((indent, root))
        if stack[-1][0] != indent:
            raise ValueError(f"{where}: this line stands in no mapping: its indentation fits none above")
        key, value = _yaml_pair(bare.strip(), where)
        if key in stack[-1][1]:
            raise ValueError(f"{where}: {key} is set twice")
        stack[-1][1][key] = _yaml_value(value, where)
        pending = (indent, stack[-1][1], key) if not value else None
    return root


def _without_comment(line: str) -> str:
    quote = ""
    for at, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#" and (at == 0 or line[at - 1] in " \t"):
            return line[:at].rstrip()
    return line.rstrip()


def _yaml_pair(text: str, where: str) -> Tuple[str, str]:
    match = re.match(r"(\"[^\"]*\"|'[^']*'|[A-Za-z_][^:\"'{}\[\]]*?)\s*:(?:\s+(.*))?\Z", text)
    if not match:
        raise ValueError(f"{where}: without PyYAML only lines of 'name: value' can be read (pip install pyyaml)")
    return match.group(1).strip("\"'"), (match.group(2) or "").strip()


def _yaml_value(text: str, where: str) -> Any:
    if text[:1] in ("'", '"'):
        if len(text) < 2 or text[-1] != text[0] or text[0] in text[1:-1] or "\\" in text:
            raise ValueError(f"{where}: without PyYAML this text cannot be read (pip install pyyaml)")
        return text[1:-1]
    if text.lower() in ("true", "yes", "on"):
        return True
    if text.lower() in ("false", "no", "off"):
        return False
    if text.lower() in ("", "null", "~"):
        return None
    if _NUMBER.match(text):
        return _number(text, where)
    if text[0] in "[{&*!|>%@`":
        raise ValueError(f"{where}: without PyYAML only plain values can be read (pip install pyyaml)")
    return text
