"""git over HTTP: /git/REPOSITORY.git..., answered by git's own program as a CGI. Clones and pushes."""
import os
import subprocess
import sys

BACKEND = "/usr/lib/git-core/git-http-backend"


def serve(x, *rest):
    r = x.request
    env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": f"{sys.argv[1]}/git", "GIT_HTTP_EXPORT_ALL": "1",
           "REMOTE_USER": "bed", "REQUEST_METHOD": r.method, "PATH_INFO": "/" + "/".join(rest),
           "QUERY_STRING": r.target.partition("?")[2], "CONTENT_TYPE": r.header("content-type"),
           "HTTP_CONTENT_ENCODING": r.header("content-encoding"),
           "HTTP_GIT_PROTOCOL": r.header("git-protocol")}
    body = x.body()
    out = subprocess.run([BACKEND], input=body, env=env | {"CONTENT_LENGTH": str(len(body))},
                         capture_output=True, check=True).stdout
    head, _, answer = out.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
    status = int(fields.pop("Status", "200").split()[0])
    x.answer(status, answer, fields.pop("Content-Type", "text/plain"), fields.items())
