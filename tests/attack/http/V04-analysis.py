"""V04: run_analysis: names of programs that lead elsewhere, and parameters that would be code."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from contexts import Paths, RUN_ANALYSIS  # noqa: E402
from host import check, finish  # noqa: E402
from server import Site, answered  # noqa: E402

TYPES = ("../secret", "..", ".", "/etc/passwd", "data_analysis.py", "data_analysis/../x", "%2e%2e",
         "data-analysis", "DATA_ANALYSIS", "", " ", "a" * 10_000, "data_analysis\n", "\u0430",
         "secret/", "a/b", "~root", "$(id)", ".hidden", "*", "con", "data_analysis ")

# Whatever is in them, parameters are equal to what was sent, and nothing ran.
PARAMETERS = (
    "'; open('/tmp/pwned', 'w') #", '"""\nopen("/tmp/pwned", "w")\n"""', "\\", "\\\\'", "\n", "\r\n",
    "\u2028import os\u2029", "${open('/tmp/pwned','w')}", "`touch /tmp/pwned`", "$(touch /tmp/pwned)",
    "\x00" * 3, "\x1b[2J", "\ufeff", "\U0001f480", "%s%n", "{parameters}", "{{7*7}}",
    {"__proto__": {"polluted": 1}}, {"constructor": {"prototype": {"polluted": 1}}},
    {"__class__": "x"}, {"": ""}, {"a'\"\\\n": 1}, [], {}, None, True, 0, 1.5, [[[]]],
    list(range(3000)), "x" * 200_000, {"k" * 5000: 1}, [None] * 1000,
)
# As text: numbers that not every reader can say.
NUMBERS = ("123456789012345678", "-9007199254740993", "1e308", "1E-400", "0.1", "-0")
NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "01", "1.", ".5", "0x10", "1e999", "9" * 400, "1_000", "+1")

PYTHON = "import os, json\nprint(json.dumps([parameters, os.path.exists('/tmp/pwned')]))"
SCRIPT = ("console.log(JSON.stringify([parameters, require('fs').existsSync('/tmp/pwned') "
          "|| ({}).polluted !== undefined]))")


def types(paths):
    wrong = []
    for type_ in TYPES:
        wrong += answered(f"{type_[:20]!r}", paths.analysis("c", "p", type_), 400)
    for type_ in (7, None, ["custom"], {"a": 1}):
        wrong += answered(f"{type_!r}", paths.analysis("c", "p", type_), 400)
    wrong += answered("custom without code", paths.analysis("c", "p", "custom"), 400)
    wrong += answered("code with a name",
                      paths.analysis("c", "p", "data_analysis", {}, code="print(1)"), 400)
    wrong += answered("another language", paths.analysis("c", "p", "custom", 1, code="1",
                                                         language="bash"), 400)
    for output in ("xml", "", "JSON", "../json", 7):
        wrong += answered(f"format {output}", paths.analysis("c", "p", "custom", 1, code="1",
                                                             outputFormat=output), 400)
    return wrong


def as_data(paths, language, code):
    wrong = []
    for sent in PARAMETERS:
        a = paths.analysis("data", language, "custom", sent, code=code, language=language)
        if isinstance(sent, str) and "\x00" in sent:
            wrong += answered("NUL", a, 400)  # no string that this server takes has one
            continue
        got = a.json().get("parsedOutput") if a.status == 200 else None
        if not got or got[1] or json.dumps(got[0]) != json.dumps(sent):
            wrong.append(f"PWNED {str(sent)[:40]!r} came as {a}")
    for text in NUMBERS + NO_NUMBERS:
        body = json.dumps({"conversationId": "data", "pathId": language, "analysisType": "custom",
                           "code": code, "language": language, "parameters": "N"}).replace('"N"', text)
        a = paths.ask("POST", RUN_ANALYSIS, body)
        wrong += answered(text[:20], a, 200 if text in NUMBERS else 400)
        if text in NUMBERS and language == "python" and a.json()["parsedOutput"][0] != json.loads(text):
            wrong.append(f"{text} came as {a}")
    return wrong


def of_earlier(paths):
    """Code that was there before sees no parameters of others, and cannot take their place."""
    wrong = []
    paths.code("earlier", "p", "import builtins, json, os\nclass Evil(dict): pass\nkept = []\n"
               "json.loads = lambda *a, **k: kept.append(a) or 'forged'\nparameters = 'old'")
    a = paths.analysis("earlier", "p", "tax_calculation", {"wrong": "on purpose"})
    if a.status != 200:
        wrong.append(f"a kernel that was changed: {a}")
    # Its own state is the conversation's: what it did to itself stays there.
    a = paths.analysis("another", "p", "custom", {"mine": 1}, code="print(parameters)", outputFormat="text")
    if b"'mine': 1" not in a.body or b"forged" in a.body:
        wrong.append(f"PWNED another path: {a}")
    a = paths.code("another", "p", "[k for k in __import__('os').environ if 'SANDGLASS' in k]")
    if a.json()["results"][0]["text"] != "[]":
        wrong.append(f"variables stay: {a}")
    return wrong


def outputs(paths):
    """Output that is no JSON, or too much of it, is told beside the output."""
    wrong = []
    for code, output in (("print('[' * 100000)", "json"), ("print('[' * 60 + ']' * 60)", "json"),
                         ("print('{\"a\":1,' * 9)", "json"), ("print('{},' * 300000)", "json"),
                         ("print('1' * 3000000)", "json"), ("print('\"\\\\ud800\"')", "json"),
                         ("import sys; sys.stdout.buffer.write(b'\\xff\\x00\"' * 999)", "json"),
                         ("print('a,b\\n\"' + 'x' * 99999)", "csv"), ("print(',' * 500000)", "csv"),
                         ("print('\\n' * 900000)", "csv"), ("1/0", "json"), ("pass", "json")):
        a = paths.analysis("outputs", "p", "custom", None, code=code, outputFormat=output)
        if a.status != 200 or a.json() is None or "parsedOutput" not in a.json():
            wrong.append(f"{code}: {a}")
    return wrong


def folder(root):
    """What an operator's folder has: programs, and what must not become one."""
    top = f"{root}/analysis"
    os.makedirs(f"{top}/folder.py")
    with open(f"{root}/secret.py", "w") as f:
        f.write("print('SECRET OUTSIDE')")
    for name, text in (("mine.py", "print(parameters['x'] + 1)"), ("large.py", "#" * 300_000),
                       ("empty.py", ""), ("closed.py", "print('CLOSED')"), ("data_analysis.txt", "x")):
        with open(f"{top}/{name}", "w") as f:
            f.write(text)
    os.chmod(f"{top}/closed.py", 0)
    with open(f"{top}/bytes.py", "wb") as f:
        f.write(b"\xff\xfe\x00")
    os.mkfifo(f"{top}/pipe.py")
    os.symlink("/dev/zero", f"{top}/zero.py")
    os.symlink("/etc/shadow", f"{top}/shadow.py")
    os.symlink("loop.py", f"{top}/loop.py")
    for at, _, names in os.walk(top):
        os.chmod(at, 0o755)
    return top


def operators(paths):
    wrong = []
    a = paths.analysis("folder", "p", "mine", {"x": 41})
    if a.status != 200 or a.json()["parsedOutput"] != 42:
        wrong.append(f"control: a program of the folder: {a}")
    for type_ in ("folder", "large", "empty", "closed", "bytes", "pipe", "zero", "shadow", "loop",
                  "missing", "secret"):
        a = paths.analysis("folder", "p", type_, {})
        wrong += answered(type_, a, 4, 5)
        if b"SECRET" in a.body or b"root:" in a.body or b"/analysis/" in a.body:
            wrong.append(f"PWNED {type_}: {a}")
    a = paths.analysis("folder", "p", "data_analysis", {"data": [{"x": 1}]})
    return wrong + ([] if a.status == 200 else [f"the built-in one is gone: {a}"])


with Site() as site:
    paths = Paths(site)
    check("V04 a program's name is a name", types(paths))
    check("V04 parameters are data, in Python", as_data(paths, "python", PYTHON))
    check("V04 parameters are data, in JavaScript", as_data(paths, "javascript", SCRIPT))
    check("V04 nothing of an earlier call is left, or forged", of_earlier(paths))
    check("V04 output that cannot be parsed is told as it is", outputs(paths))
    check("V04 the server goes on", site.trouble() + paths.trouble())
site = Site()
top = folder(site.dir)
site.options = ("--analysis", top)
with site:
    paths = Paths(site)
    check("V04 an operator's folder gives programs and nothing else", operators(paths))
    check("V04 the server goes on", site.trouble() + paths.trouble())
finish()
