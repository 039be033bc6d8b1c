#!/usr/bin/env python3
"""OCI images for tests.

oci_image.py FOLDER NAME CONFIG LAYER...        writes a layout; CONFIG is the JSON of the configuration's "config"
                                                ({"Cmd": ["/app"]}), a LAYER a tar, which is compressed
oci_image.py --serve FOLDER PORT_FILE LOG       is a registry of that layout, see serve()
"""

import gzip
import hashlib
import http.server
import json
import os
import pathlib
import sys
import time

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def put(folder, content):
    digest = hashlib.sha256(content).hexdigest()
    (folder / "blobs/sha256" / digest).write_bytes(content)
    return {"digest": "sha256:" + digest, "size": len(content)}


def write_layout(folder, name, config, layers):
    (folder / "blobs/sha256").mkdir(parents=True)
    tars = [pathlib.Path(layer).read_bytes() for layer in layers]
    document = {
        "architecture": "amd64",
        "os": "linux",
        "config": json.loads(config),
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest() for tar in tars]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            **put(folder, json.dumps(document).encode()),
        },
        "layers": [
            {
                "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                **put(folder, gzip.compress(tar, 1, mtime=0)),
            }
            for tar in tars
        ],
    }
    entry = {"mediaType": MANIFEST, **put(folder, json.dumps(manifest).encode())}
    entry["annotations"] = {"org.opencontainers.image.ref.name": name}
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


def serve(folder, port_file, log):
    """A registry of one layout: its port goes to PORT_FILE, a line for each request to LOG. While there is a file
    PORT_FILE.hold it gives the first half of a blob above 64 KiB and then nothing."""
    hold = pathlib.Path(port_file + ".hold")

    class Registry(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            with open(log, "a") as lines:
                lines.write(f"{self.path.rsplit('/', 2)[1]} {self.headers.get('Range', '-')}\n")
            if self.path == "/v2/":
                return self.answer(b"{}", "application/json")
            _, kind, name = self.path.rsplit("/", 2)
            if kind == "manifests":
                entry = json.loads((folder / "index.json").read_text())["manifests"][0]
                name = entry["digest"]
            blob = folder / "blobs/sha256" / name.removeprefix("sha256:")
            self.answer(blob.read_bytes(), MANIFEST if kind == "manifests" else "application/octet-stream")

        do_HEAD = do_GET

        def answer(self, content, media_type):
            first = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")[0])
            self.send_response(206 if first else 200)
            if first:
                self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(content) - first))
            self.end_headers()
            if self.command == "HEAD":
                return
            rest = content[first:]
            if hold.exists() and len(rest) > 65536:
                self.wfile.write(rest[: len(rest) // 2])
                self.wfile.flush()
                while hold.exists():
                    time.sleep(0.01)
                self.close_connection = True
                return
            self.wfile.write(rest)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    server.daemon_threads = True
    part = pathlib.Path(port_file + ".part")
    part.write_text(str(server.server_port))
    os.rename(part, port_file)
    server.serve_forever()


if sys.argv[1] == "--serve":
    serve(pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4])
else:
    write_layout(pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])
