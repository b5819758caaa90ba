"""A small OTLP collector, and checks of the traces that it received.

  traces.py listen PORT FILE      receives OTLP over HTTP and writes one span per line
  traces.py show FILE [TRACE]     prints a trace as a tree; by default the one with the most services
  traces.py joined FILE STEP...   fails unless one trace has all steps (service:span), each an ancestor of the next

The protobuf messages are parsed here, without a library.
"""

import http.server
import json
import sys
from collections import defaultdict


def fields(data):
    """The fields of a protobuf message: number, value."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
        elif kind == 2:
            size = varint()
            yield number, data[at : at + size]
            at += size
        else:
            size = {1: 8, 5: 4}[kind]
            yield number, int.from_bytes(data[at : at + size], "little")
            at += size


def pick(data, *path):
    """All values at a path of field numbers."""
    first, *rest = path
    for number, value in fields(data):
        if number == first:
            yield from pick(value, *rest) if rest else [value]


def attributes(data, number):
    found = {}
    for pair in pick(data, number):
        key = next(pick(pair, 1)).decode()
        for kind, value in fields(next(pick(pair, 2), b"")):
            found[key] = value.decode() if kind == 1 else value
    return found


def spans(request):
    for resource in pick(request, 1):
        service = attributes(next(pick(resource, 1), b""), 1).get("service.name")
        for span in pick(resource, 2, 2):
            one = dict(fields(span))
            yield {
                "service": service,
                "name": one[5].decode(),
                "trace": one[1].hex(),
                "span": one[2].hex(),
                "parent": one.get(4, b"").hex(),
                "start": one[7],
                "end": one[8],
                "attributes": attributes(span, 9),
            }


def listen(port, file):
    class Sink(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with open(file, "a", encoding="utf-8") as out:
                for span in spans(body):
                    print(json.dumps(span), file=out)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Sink).serve_forever()


def read(file):
    traces = defaultdict(dict)
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            span = json.loads(line)
            traces[span["trace"]][span["span"]] = span
    return traces


def show(file, trace=None):
    traces = read(file)
    trace = trace or max(traces, key=lambda each: len({span["service"] for span in traces[each].values()}))
    started_at = min(span["start"] for span in traces[trace].values())

    def branch(parent, depth):
        children = [span for span in traces[trace].values() if span["parent"] == parent]
        for span in sorted(children, key=lambda span: span["start"]):
            about = [span["attributes"].get(key) for key in ("http.request.method", "http.route", "queue", "kind", "outcome")]
            description = " ".join([span["name"], *(str(each) for each in about if each)])
            print(f"{(span['start'] - started_at) / 1e6:9.1f} ms {(span['end'] - span['start']) / 1e6:8.1f} ms  {'  ' * depth}{span['service']}: {description}")
            branch(span["span"], depth + 1)

    print(f"{'after':>12} {'took':>11}  trace {trace}")
    for parent in {span["parent"] for span in traces[trace].values()} - set(traces[trace]):
        branch(parent, 0)


def joined(file, *steps):
    for trace in read(file).values():
        for span in trace.values():
            current, left = span, list(steps)
            while current and left:
                if f"{current['service']}:{current['name']}" == left[-1]:
                    left.pop()
                current = trace.get(current["parent"])
            if not left:
                print(f"one trace: {' -> '.join(steps)}")
                return 0
    print(f"no trace has {' -> '.join(steps)}")
    return 1


if __name__ == "__main__":
    sys.exit({"listen": listen, "show": show, "joined": joined}[sys.argv[1]](*sys.argv[2:]))
