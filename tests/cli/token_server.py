#!/usr/bin/env python3
"""A token server for tests of registries that want a login.

token_server.py KEY CERTIFICATE PORT_FILE LOG

Gives Docker's tokens, signed with KEY, to alice with the password in wonderland, by GET with Basic and by POST with the
identity token looking-glass. Its port goes to PORT_FILE; each request, without what is secret in it, is a line of LOG.
openssl(1) signs: Python's own library cannot.
"""

import base64
import http.server
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.parse

key, certificate, port_file, log = sys.argv[1:]
service, issuer = "holt-test-registry", "holt-test-issuer"
der = "".join(line for line in pathlib.Path(certificate).read_text().splitlines() if not line.startswith("-----"))
basic = "Basic " + base64.b64encode(b"alice:in wonderland").decode()


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token_for(scope):
    kind, name, actions = scope.split(":")
    now = int(time.time())
    claims = {
        "iss": issuer,
        "sub": "alice",
        "aud": service,
        "exp": now + 300,
        "nbf": now - 300,
        "iat": now - 300,
        "jti": os.urandom(8).hex(),
        "access": [{"type": kind, "name": name, "actions": actions.split(",")}],
    }
    head = {"typ": "JWT", "alg": "RS256", "x5c": [der]}
    text = encoded(json.dumps(head).encode()) + "." + encoded(json.dumps(claims).encode())
    signing = subprocess.run(
        ["openssl", "dgst", "-sha256", "-sign", key], input=text.encode(), stdout=subprocess.PIPE, check=True
    )
    return text + "." + encoded(signing.stdout)


class Tokens(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        self.answer(asked, self.headers.get("Authorization") == basic)

    def do_POST(self):
        asked = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.answer(asked, asked.get("refresh_token") == ["looking-glass"])

    def answer(self, asked, known):
        with open(log, "a") as lines:
            lines.write(f"{self.command} {asked['service'][0]} {asked['scope'][0]} {'alice' if known else 'stranger'}\n")
        body = {"token": token_for(asked["scope"][0])} if known else {"details": "incorrect username or password"}
        content = json.dumps(body).encode()
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tokens)
part = pathlib.Path(port_file + ".part")
part.write_text(str(server.server_port))
os.rename(part, port_file)
server.serve_forever()
