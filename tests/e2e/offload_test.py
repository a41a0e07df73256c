#!/usr/bin/env python3
"""--offload fills devices with layers, the last first, and the text stays what the CPU alone says.

    offload_test.py TENON MODEL
"""

import json
import re
import sys

from program import check, run

CPU = "cpu:isa=reference"
LAYERS = 30


def main():
    tenon, model = sys.argv[1:3]

    def layers_on(devices, *args):
        """Layers with a weight's node on each device."""
        plan = json.loads(run(tenon, "graph", model, "--device", devices, "--format", "json", *args))
        where = {}
        for node in plan["nodes"]:
            layer = re.match(r"blk\.(\d+)\.attn_q$", node["name"])
            if layer:
                where.setdefault(node["device"], []).append(int(layer.group(1)))
        return where, plan

    where, plan = layers_on(f"mock:0,{CPU}")
    check(where == {"mock:0": list(range(LAYERS))}, "auto: all layers where there is room for all")
    for count in (0, 1, 7, LAYERS, LAYERS + 5):
        where, plan = layers_on(f"mock:0,{CPU}", "--offload", str(count))
        last = list(range(max(0, LAYERS - count), LAYERS))
        check(where.get("mock:0", []) == last, f"--offload {count}: the last {len(last)} layers")
        embedding = next(n["device"] for n in plan["nodes"] if n["name"] == "token_embd")
        check((embedding == "mock:0") == (count >= LAYERS), "and the embedding with all of them only")

    room = {"mock:0": 40 << 20, "mock:1": 30 << 20}
    devices = ",".join(f"{name}:memory_bytes={size}" for name, size in room.items()) + "," + CPU
    context = ["--ctx", "256", "--precision", "exact"]
    where, plan = layers_on(devices, *context)
    spread = where["cpu"] + where["mock:1"] + where["mock:0"]
    check(spread == list(range(LAYERS)) and len(where) == 3, f"auto, too little room: {({k: len(v) for k, v in where.items()})}")
    for device in plan["devices"]:
        if device["name"] in room:
            all_bytes = device["bytes"] + device["weight_bytes"] + device["state_bytes"]
            check(room[device["name"]] * 0.6 < all_bytes <= room[device["name"]], f"{device['name']} is well filled")

    text = [*context, "-p", "The capital of France is", "-n", "12", "--temp", "0", "--raw", "-q"]
    alone = run(tenon, "run", model, "--device", CPU, *text)
    check(run(tenon, "run", model, "--device", devices, *text) == alone, "the same text on three devices, by auto")
    check(run(tenon, "run", model, "--device", f"mock:0,{CPU}", "--offload", "5", *text) == alone, "and by number")

    check("memory" in run(tenon, "run", model, "--device", devices, "--offload", "29", *text, code=1), "no room")
    check("only one device" in run(tenon, "run", model, "--device", CPU, "--offload", "3", *text, code=1), "one device")
    check("auto" in run(tenon, "run", model, "--offload", "some", *text, code=2), "no number")
    return 0


if __name__ == "__main__":
    sys.exit(main())
