// Segments, copies and waits of graphs drawn by hand: see Sketch.
#include "sched/split.h"

#include "sched/sketch.h"

using namespace tenon;

TEST_CASE("split: a segment for each stretch of one device, with what it lacks copied in") {
    Sketch s("ab");
    ValueId x = s.input("x");
    x = s.mul("one", x, s.weight("w1", "a"));
    x = s.neg("two", x);
    x = s.mul("three", x, s.weight("w3", "b"));
    x = s.mul("four", x, s.weight("w4", "a"));
    CHECK(s.segments() == "a: x<b | one two ; b^0: two<a | three ; a^1: three<b | four");
}

TEST_CASE("split: a value is carried once to a device, for all later readers there") {
    Sketch s("ab");
    const ValueId x = s.input("x");
    const ValueId one = s.mul("one", x, s.weight("w1", "a"));
    const ValueId two = s.mul("two", one, s.weight("w2", "b"));
    const ValueId three = s.add("three", one, two);
    const ValueId four = s.mul("four", three, s.weight("w4", "a"));
    s.add("five", s.mul("six", four, s.weight("w6", "b")), one);
    CHECK(s.segments() == "a: x<b | one ; b^0: one<a | two ; a^1: two<b | three four ; b^2: four<a | six five");
}

TEST_CASE("split: what a device can use where it lies isn't carried") {
    Sketch s("ab");
    s.shares('b', "a");
    ValueId x = s.mul("one", s.input("x"), s.weight("w1", "a"));
    x = s.mul("two", x, s.weight("w2", "b"));
    s.mul("three", x, s.weight("w3", "a"));
    s.refuses("a", "two");
    CHECK(s.segments() == "a: | one ; b^0: one<a | two ; a^1: | three");
}

TEST_CASE("split: a weight that must be staged begins a segment, if the one at hand has copies already") {
    Sketch s("ab");
    ValueId x = s.input("x");
    for (int i = 0; i < 3; ++i) x = s.mul(fmt::format("n{}", i), x, s.weight(fmt::format("w{}", i), "b"));
    for (int i = 0; i < 3; ++i) s.offloads("a", fmt::format("n{}", i));
    CHECK(s.segments() == "a: x<b w0<b | n0 ; a: w1<b | n1 ; a: w2<b | n2");
}

TEST_CASE("split: what was changed in place is carried again") {
    Sketch s("ab");
    const ValueId rows = s.build.input("rows", DType::f32, {1, 1, 2}), ids = s.build.input("ids", DType::i32, {1});
    const ValueId made = s.build.node(TN_OP_NEG, {s.build.input("x", DType::f32, {4, 1, 2})}, {}, "made");
    const ValueId before = s.build.node(TN_OP_NEG, {made}, {}, "before");
    const ValueId after = s.build.kv_append(made, rows, ids, "change");
    s.build.add(after, before, "after");
    s.pin("made", 'b'), s.pin("before", 'a'), s.pin("change", 'b'), s.pin("after", 'a');
    // The change waits for the reader of what was there before.
    CHECK(s.segments() == "b: | made ; a^0: made<b | before ; b^1: | change ; a^2: made<b | after");
}

TEST_CASE("split: a node whose outputs were asked for ends its segment") {
    Sketch s("ab");
    ValueId x = s.mul("one", s.input("x"), s.weight("w", "b"));
    x = s.neg("two", x);
    x = s.neg("three", x);
    const NodeId asked[] = {0, 1};
    CHECK(s.segments(asked) == "b: | one ; b: | two ; b: | three");
}

TEST_CASE("split: independent stretches on different devices don't wait for each other") {
    Sketch s("abc");
    const ValueId x = s.input("x");
    const ValueId left = s.mul("left", x, s.weight("wl", "a"));
    const ValueId right = s.mul("right", x, s.weight("wr", "b"));
    s.mul("join", s.add("sum", left, right), s.weight("wj", "c"));
    s.pin("sum", 'c');
    CHECK(s.segments() == "a: x<c | left ; b: x<c | right ; c^1^0: left<a right<b | sum join");
}

TEST_CASE("split: what follows from other waits isn't waited for again") {
    Sketch s("abc");
    const ValueId a = s.mul("a", s.input("x"), s.weight("wa", "a"));
    const ValueId b = s.mul("b", a, s.weight("wb", "b"));
    s.mul("c", s.add("sum", a, b), s.weight("wc", "c"));
    s.pin("sum", 'c');
    CHECK(s.segments() == "a: x<c | a ; b^0: a<a | b ; c^1: a<a b<b | sum c");
}
