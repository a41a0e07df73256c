#!/usr/bin/env python3
"""tenon graph shows the same schedule in every form, keeps pins, and says what it can't do.

    graph_test.py TENON MODEL
"""

import json
import os
import re
import shutil
import sys
import xml.etree.ElementTree as xml

from program import check, run

DEVICES = "mock:0,mock:1,cpu:isa=reference"
PINS = [r"blk\.[0-4]\.=mock:1", r"blk\.7\.attn=cpu"]


def graph(tenon, model, *args, env=None, code=0, device=DEVICES, pins=PINS):
    command = [tenon, "graph", model, "--device", device, *args]
    for pin in pins:
        command += ["--pin", pin]
    return run(*command, code=code, env=env, timeout=120)


def check_json(text, plan):
    nodes = plan["nodes"]
    check(sum(s["nodes"] for s in plan["segments"]) == len(nodes), "each node is in one segment")
    for segment in plan["segments"]:
        part = nodes[segment["first_node"]:segment["first_node"] + segment["nodes"]]
        assert all(n["device"] == segment["device"] for n in part), segment
        for copy in segment["copies"]:
            assert copy["bytes"] > 0 and copy["from"] != segment["device"] and copy["code"] == "4.cpy", copy
    for node in nodes:
        if re.search(PINS[0].split("=")[0], node["name"]):
            assert (node["device"], node["code"]) == ("mock:1", "usr"), node
        elif re.search(r"blk\.7\.attn", node["name"]):
            assert (node["device"], node["code"]) == ("cpu", "usr"), node
        assert re.fullmatch(r"usr|1\.(dst|vsrc|inp|off|wgt)|2\.sup|3\.(best|upg)", node["code"]), node
    check(True, "pins are kept, every node has a code")
    check({v["code"] for v in plan["values"] if v["name"] in ("tokens", "pos")} == {"1.inp"}, "inputs are 1.inp")
    lines = [line.split() for line in text.splitlines() if line.startswith("  ")]
    shown = [(line[0], line[1], line[3]) for line in lines if line[0] != "4.cpy"]
    check(shown == [(n["code"], n["device"], n["name"]) for n in nodes], "the text shows the same nodes")
    copies = sum(len(s["copies"]) for s in plan["segments"])
    check(sum(line[0] == "4.cpy" for line in lines) == copies > 0, f"and the same {copies} copies")
    for device in plan["devices"]:
        assert device["arena_lower_bound_bytes"] <= device["arena_bytes"] <= device["bytes"], device
        check(re.search(rf"^{device['name']}: weights {device['weight_bytes']} bytes.* arena {device['arena_bytes']} ",
                        text, re.M), f"the memory of {device['name']}")


def check_svg(dot, svg, plan):
    root = xml.fromstring(svg)
    clusters = [g for g in root.iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "cluster"]
    check(len(clusters) == len(plan["segments"]), "a box for each segment")
    colours = {}
    for group in clusters:
        number, device = re.search(r"segment (\d+) on (\S+)", "".join(group.itertext())).groups()
        colours.setdefault(device, set()).add(group.find("{http://www.w3.org/2000/svg}polygon").get("fill"))
        assert plan["segments"][int(number)]["device"] == device
    check(all(len(c) == 1 for c in colours.values()) and len(set.union(*colours.values())) == len(colours) == 3,
          "a colour for each device")
    check(dot.startswith("digraph") and dot.count("subgraph cluster_") == len(clusters), "the DOT has them too")


def main():
    tenon, model = sys.argv[1:3]
    text = graph(tenon, model)
    plan = json.loads(graph(tenon, model, "--format", "json"))
    check_json(text, plan)
    check_svg(graph(tenon, model, "--format", "dot"), graph(tenon, model, "--format", "svg"), plan)
    check(graph(tenon, model, "--placement", "reference") == text, "reference is the default placement")
    many = json.loads(graph(tenon, model, "--format", "json", "--tokens", "64", "--slots", "4"))
    check(many["devices"][0]["slots"] == 4 and many["devices"][0]["arena_bytes"] > plan["devices"][0]["arena_bytes"],
          "more tokens take more memory, and slots are counted")

    check("no such device" in graph(tenon, model, pins=["x=nowhere"], code=1), "a pin to a device that isn't there")
    check("REGEX=DEVICE" in graph(tenon, model, pins=["x"], code=2), "a pin that is none")
    check("reference" in graph(tenon, model, "--placement", "best", code=2), "an unknown placement")
    message = graph(tenon, model, device="mock:0:ops=add,mock:1:ops=mul", pins=[], code=1)
    check("mock:0" in message and "mock:1" in message, "what no device runs, with each device's reason")
    check("graphviz" in graph(tenon, model, "--format", "svg", env={**os.environ, "PATH": "/nowhere"}, code=1),
          "no program 'dot'")
    check(shutil.which("dot") is not None, "Graphviz is here")
    return 0


if __name__ == "__main__":
    sys.exit(main())
