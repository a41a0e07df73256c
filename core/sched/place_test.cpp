// Reference placement, code by code. What is expected was written down from the table in DESIGN section 3, not from what
// the code answers. Devices are letters, the last one is the fallback: see Sketch.
#include "sched/place.h"

#include "sched/sketch.h"

using namespace tenon;

TEST_CASE("placement usr: a pin is kept against weights, neighbours and a better place") {
    Sketch s("abc");
    s.same_memory('a', 'b');
    const ValueId w = s.weight("w", "a");
    const ValueId pinned = s.mul("pinned", s.input("x"), w);  // the weight says a
    const ValueId next = s.neg("next", pinned);               // its neighbour too
    s.neg("upward", next);                                    // a has b's memory: 3.upg would move it
    s.pin("pinned", 'c'), s.pin("upward", 'b');
    CHECK(s.nodes() == "pinned:c=usr next:b=2.sup upward:b=usr");
}

TEST_CASE("placement usr: a pin that the device can't keep names node, device and reason") {
    Sketch s("ab");
    s.neg("n", s.input("x"));
    s.pin("n", 'a'), s.refuses("a", "n");
    CHECK(s.nodes() == "node 'n' is pinned to a, which doesn't support it: it said no");
}

TEST_CASE("placement 1.dst: what lies in a buffer belongs to the first device that can use it there") {
    Sketch s("abc");
    s.memory("file", "bc");
    const ValueId file = s.weight("file_w", "file"), a = s.weight("a_w", "a"), c = s.weight("c_w", "c");
    const ValueId x = s.input("x");
    s.add("n", s.add("m", s.mul("l", x, a), file), c);
    CHECK(s.values() == "file_w:b=1.dst a_w:a=1.dst c_w:c=1.dst x:c=1.inp");
}

TEST_CASE("placement 1.vsrc: views of a bound value and what changes it in place go where it lies") {
    Sketch s("abc");
    const ValueId state = s.state("state", "b"), rows = s.build.input("rows", DType::f32, {1, 1, 2}),
                  ids = s.build.input("ids", DType::i32, {1});
    const ValueId view = s.build.slice(state, 0, 0, 1);
    const ValueId after = s.build.kv_append(state, rows, ids, "append");
    s.neg("before", view), s.neg("after", after);
    CHECK(s.nodes() == "append:b=1.vsrc before:b=2.sup after:b=2.sup");
    CHECK(s.values({{view, "view"}}) == "state:b=1.dst rows:c=1.inp ids:c=1.inp view:b=1.vsrc");
}

TEST_CASE("placement: a state is never carried, so its readers go where it lies even without neighbours there") {
    Sketch s("abc");
    const ValueId state = s.state("state", "b"), w = s.weight("w", "a");
    const ValueId first = s.mul("first", s.input("x"), w);
    s.add("reader", first, s.build.slice(state, 0, 0, 1));
    // Spread from `first` would say a, which can't reach the state.
    CHECK(s.nodes() == "first:a=1.wgt reader:b=3.best");
    Sketch nobody("ab");
    nobody.memory("island", "");
    nobody.neg("reader", nobody.state("state", "island"));
    CHECK(nobody.nodes() ==
          "no device supports node 'reader': neg(f32); a: it can't reach what the node changes, or a state that it "
          "reads; b: it can't reach what the node changes, or a state that it reads");
}

TEST_CASE("placement 1.inp: a graph input lies with the fallback, whoever reads it") {
    Sketch s("abc");
    const ValueId x = s.input("x");
    s.mul("n", x, s.weight("w", "a"));
    CHECK(s.values() == "x:c=1.inp w:a=1.dst");
    CHECK(s.nodes() == "n:a=1.wgt");
}

TEST_CASE(
    "placement 1.off: with its first weight on the fallback a node goes to the first higher device that wants it") {
    Sketch s("abcd");
    ValueId x = s.input("x");
    for (const char *name : {"nobody", "b_and_c", "refused", "elsewhere", "second"}) {
        const ValueId far = s.weight(fmt::format("w.{}", name), name == std::string_view("elsewhere") ? "c" : "d");
        x = s.mul(name, x, far);
    }
    s.offloads("bc", "b_and_c");
    s.offloads("ab", "refused"), s.refuses("a", "refused");
    s.offloads("a", "elsewhere");  // its weight isn't on the fallback
    s.offloads("d", "second");     // the fallback isn't higher
    CHECK(s.nodes() == "nobody:d=1.wgt b_and_c:b=1.off refused:b=1.off elsewhere:c=1.wgt second:d=1.wgt");
}

TEST_CASE("placement 1.wgt: to the first device that can use the first weight's memory and runs the op") {
    Sketch s("abc");
    s.memory("file", "abc"), s.memory("island", "");
    const ValueId x = s.input("x"), a = s.weight("a_w", "a"), b = s.weight("b_w", "b"),
                  file = s.weight("file_w", "file"), island = s.weight("island_w", "island");
    s.mul("first_counts", b, a);
    s.mul("by_memory", x, b);
    s.mul("refused", x, file);
    s.mul("nobody", x, island);
    s.mul("only_a", x, a);
    s.refuses("a", "refused"), s.refuses("a", "only_a");
    // Whose weight nobody reaches, and who is refused where it lies, stay open for the sweeps.
    CHECK(s.nodes() == "first_counts:b=1.wgt by_memory:b=1.wgt refused:b=1.wgt nobody:b=2.sup only_a:b=2.sup");
}

TEST_CASE("placement 1.wgt: a view of a weight speaks for the weight") {
    Sketch s("abc");
    const ValueId weight = s.weight("w", "b");
    s.mul("n", s.input("x"), s.build.slice(weight, 0, 0, 1));
    CHECK(s.nodes() == "n:b=1.wgt");
}

TEST_CASE("placement 2.sup: first down, then up, without the fallback; whoever lies there ends both") {
    Sketch s("abc");
    ValueId x = s.input("x");
    auto open = [&](const char *name) { x = s.neg(name, x); };
    auto fixed = [&](const char *name, const char *kind) {
        x = s.mul(name, x, s.weight(fmt::format("w.{}", name), kind));
    };
    open("above_a"), fixed("a", "a"), open("below_a"), fixed("c", "c"), open("above_b"), fixed("b", "b"),
        open("below_b");
    CHECK(s.nodes() == "above_a:a=2.sup a:a=1.wgt below_a:a=2.sup c:c=1.wgt above_b:b=2.sup b:b=1.wgt below_b:b=2.sup");
}

TEST_CASE("placement 2.sup: down comes before up") {
    Sketch s("abc");
    ValueId x = s.mul("a", s.input("x"), s.weight("wa", "a"));
    x = s.neg("between", x);
    x = s.mul("b", x, s.weight("wb", "b"));
    CHECK(s.nodes() == "a:a=1.wgt between:a=2.sup b:b=1.wgt");
}

TEST_CASE("placement 2.sup: up without the fallback comes before down with it") {
    Sketch s("abc");
    ValueId x = s.mul("c", s.input("x"), s.weight("wc", "c"));
    x = s.neg("between", x);
    x = s.mul("b", x, s.weight("wb", "b"));
    CHECK(s.nodes() == "c:c=1.wgt between:b=2.sup b:b=1.wgt");
}

TEST_CASE("placement 2.sup: then the fallback spreads too, down and then up") {
    Sketch s("ab");
    ValueId x = s.neg("above", s.input("x"));
    x = s.mul("b", x, s.weight("wb", "b"));
    x = s.neg("below", x);
    CHECK(s.nodes() == "above:b=2.sup b:b=1.wgt below:b=2.sup");
    Sketch t("abc");  // between two: the third sweep reaches it from above before the fourth does from below
    x = t.mul("a", t.input("x"), t.weight("wa", "a"));
    x = t.mul("c", x, t.weight("wc", "c"));
    x = t.neg("refused_by_a", x);
    x = t.mul("a2", x, t.weight("wa2", "a"));
    t.refuses("a", "refused_by_a");
    CHECK(t.nodes() == "a:a=1.wgt c:c=1.wgt refused_by_a:c=2.sup a2:a=1.wgt");
}

TEST_CASE("placement 2.sup: who is refused is passed over, and the spread goes on behind it") {
    Sketch s("abc");
    ValueId x = s.mul("a", s.input("x"), s.weight("wa", "a"));
    x = s.neg("refused", x);
    x = s.neg("behind", x);
    s.refuses("a", "refused");
    // Nobody else spreads; of b and c neither reaches what a made, and the higher one has it.
    CHECK(s.nodes() == "a:a=1.wgt refused:b=3.best behind:a=2.sup");
}

TEST_CASE("placement 2.sup: views take no part") {
    Sketch s("abc");
    const ValueId input = s.input("x"), x = s.mul("a", input, s.weight("wa", "a"));
    const ValueId view = s.build.slice(x, 0, 0, 1);
    s.neg("behind", view);
    CHECK(s.nodes() == "a:a=1.wgt behind:a=2.sup");
    CHECK(s.values({{view, "view"}}) == "x:c=1.inp wa:a=1.dst view:a=4.vsrc");
}

TEST_CASE("placement 3.best: where most inputs can be used as they lie; ties go to the higher device") {
    Sketch s("abc");
    const ValueId x = s.input("x");
    s.neg("at_the_input", x);  // c has it
    CHECK(s.nodes() == "at_the_input:c=3.best");

    Sketch tie("abc");
    tie.shares('c', "b");  // b and c can both use it
    tie.neg("n", tie.input("x"));
    CHECK(tie.nodes() == "n:b=3.best");

    Sketch none("abc");  // nobody who runs it can
    none.neg("n", none.input("x"));
    none.refuses("c", "n");
    CHECK(none.nodes() == "n:a=3.best");

    Sketch most("abcd");
    const ValueId x2 = most.input("x");
    const ValueId left = most.mul("left", x2, most.weight("w1", "b")),
                  right = most.mul("right", x2, most.weight("w2", "b"));
    const ValueId other = most.mul("other", x2, most.weight("w3", "a"));
    most.mul("last", x2, most.weight("w4", "d"));
    tn_params_concat along{};
    along.struct_size = TN_SIZE_PARAMS_CONCAT;
    most.build.node(TN_OP_CONCAT, {left, other, right}, ParamBlob::of(along), "open");
    most.refuses("d", "open");  // whom the sweeps ask
    CHECK(most.nodes() == "left:b=1.wgt right:b=1.wgt other:a=1.wgt last:d=1.wgt open:b=3.best");
}

TEST_CASE("placement 3.best: what no device runs is an error with node, op, types and all reasons") {
    Sketch s("ab");
    s.add("n", s.input("x"), s.weight("w", "a"));
    s.refuses("ab", "n");
    CHECK(s.nodes() == "no device supports node 'n': add(f32, f32); a: it said no; b: it said no");
}

TEST_CASE("placement 3.upg: up to the first higher device of the same memory that can use all inputs") {
    Sketch s("abcd");
    s.same_memory('b', 'c');
    s.memory("packed", "c");
    ValueId x = s.mul("c", s.input("x"), s.weight("wc", "packed"));  // only c can use it: stays
    x = s.neg("moves", x);                                           // spread says c, b has the same memory
    x = s.neg("refused", x);                                         // b doesn't run it
    x = s.mul("kept", x, s.weight("wc2", "packed"));
    s.refuses("a", "moves"), s.refuses("a", "refused"), s.refuses("b", "refused");
    CHECK(s.nodes() == "c:c=1.wgt moves:b=3.upg refused:c=2.sup kept:c=1.wgt");
    Sketch other("abc");  // a can use b's memory, but computes in another: no reason to move
    other.shares('b', "a");
    x = other.mul("b", other.input("x"), other.weight("wb", "b"));
    other.refuses("a", "b");
    other.neg("stays", x);
    CHECK(other.nodes() == "b:b=1.wgt stays:b=2.sup");
    Sketch inputs("abc");  // same memory, but an input lies in the fallback's
    inputs.same_memory('a', 'b');
    inputs.shares('c', "b");
    inputs.memory("packed", "b");
    x = inputs.mul("b", inputs.input("x"), inputs.weight("wb", "packed"));
    inputs.add("stays", x, inputs.input("y"));
    inputs.neg("moves", x);
    CHECK(inputs.nodes() == "b:b=1.wgt stays:b=2.sup moves:a=3.upg");
}

TEST_CASE("placement 4.vsrc, 4.cur: views follow their source, a constant its first reader") {
    Sketch s("abc");
    const ValueId x = s.input("x");
    const float one[2] = {1, 1};
    const ValueId constant = s.build.constant(DType::f32, {2}, std::as_bytes(std::span(one)));
    const ValueId view = s.build.reshape(x, {1, 2}), of_constant = s.build.reshape(constant, {1, 2});
    const ValueId first = s.mul("first", s.weight("w", "b"), constant);
    s.mul("second", first, s.weight("w2", "a"));
    s.add("third", of_constant, view);
    const std::string name(s.build.value(constant).name);
    CHECK(s.nodes() == "first:b=1.wgt second:a=1.wgt third:a=2.sup");
    CHECK(s.values({{view, "view"}, {of_constant, "of_constant"}, {constant, "constant"}}) ==
          "x:c=1.inp constant:b=4.cur view:c=4.vsrc of_constant:b=4.vsrc w:b=1.dst w2:a=1.dst");
}
