// Where values live: slots that are shared in turn, the caller's memory, and blocks from the host.
#include "plan_testing.hpp"

namespace cuvil {
namespace {

using Texts = std::vector<std::string>;

TEST(Memory, ValuesShareASlotInTurn) {
    Planned p(R"(func @main(%x: f32[N,4]) -> f32[N,4] {
  %a = softmax %x : f32[N,4]
  %b = softmax %a : f32[N,4]
  %c = softmax %b : f32[N,4]
  %d = softmax %c : f32[N,4]
  return %d
})");
    // A step reads one slot and writes the other; the last writes into the caller's memory.
    EXPECT_EQ(p.slot("a"), 0);
    EXPECT_EQ(p.slot("b"), 1);
    EXPECT_EQ(p.slot("c"), 0);
    EXPECT_EQ(p.buffer("d").place, Buffer::Output);
    EXPECT_EQ(p.slots(), (Texts{"16*N", "16*N"}));
}

TEST(Memory, ASlotIsAsLargeAsItsLargestMember) {
    Planned p(R"(func @main(%x: f32[N,4], %y: f32[M]) -> (f32[N,4], f32[M]) {
  %a = softmax %x : f32[N,4]
  %b = softmax %a : f32[N,4]
  %c = softmax %y : f32[M]
  %d = softmax %c : f32[M]
  return %b, %d
})");
    EXPECT_EQ(p.slot("a"), p.slot("c"));
    ASSERT_EQ(p.plan.slots.size(), 1u);
    EXPECT_EQ(p.plan.slots[0].size, Dim::max(Dim::symbol("N") * 16, Dim::symbol("M") * 4));
}

TEST(Memory, AViewKeepsWhatItLooksAt) {
    Planned p(R"(func @main(%x: f32[4]) -> f32[2,2] {
  %a = softmax %x : f32[4]
  %v = reshape %a {shape = [2,2]} : f32[2,2]
  %b = softmax %x : f32[4]
  %w = reshape %b {shape = [2,2]} : f32[2,2]
  %c = add %v, %w : f32[2,2]
  return %c
})");
    EXPECT_EQ(p.plan.buffer(p.value("a")), p.plan.buffer(p.value("v")));
    EXPECT_NE(p.slot("a"), p.slot("b"));
}

TEST(Memory, ResultsAreMadeInTheCallersMemoryOnce) {
    Planned p(R"(func @main(%x: f32[4]) -> (f32[2,2], f32[4]) {
  %a = softmax %x : f32[4]
  %v = reshape %a {shape = [2,2]} : f32[2,2]
  %b = softmax %a : f32[4]
  return %v, %a
})");
    EXPECT_EQ(p.buffer("a").place, Buffer::Output);
    EXPECT_EQ(p.buffer("a").index, 0); // output 1 is a copy
    EXPECT_EQ(p.slot("b"), 0);
}

TEST(Memory, InputsAndConstantsAreNoSlots) {
    Planned p(R"(func @main(%x: f32[2]) -> (f32[2], f32[2]) {
  %c = constant [1.0, 2.0] : f32[2]
  return %x, %c
})");
    EXPECT_EQ(p.buffer("x").place, Buffer::Input);
    EXPECT_EQ(p.buffer("c").place, Buffer::Constant);
    EXPECT_EQ(p.plan.constant_bytes, 64);
}

TEST(Memory, SizesThatOnlyDataShowsComeFromTheHost) {
    Planned p(R"(func @main(%x: f32[N]) -> i64[1,k] {
  %a = nonzero %x {count = "k"} : i64[1,k]
  %b = neg %a : i64[1,k]
  return %b
})");
    EXPECT_EQ(p.buffer("a").place, Buffer::Dynamic);
    EXPECT_EQ(p.buffer("b").place, Buffer::Dynamic);
    EXPECT_FALSE(p.plan.known_at_entry(Dim::symbol("k")));
}

// The caller gives no memory for a shape that only data shows, even where the number of elements is known.
TEST(Memory, AViewOfAnUnknownShapeIsNotMadeInTheCallersMemory) {
    Planned p(R"(func @main(%x: f32[4], %y: f32[4]) -> f32[k,floordiv(4, k)] {
  %i = nonzero %y {count = "k"} : i64[1,k]
  %a = softmax %x : f32[4]
  %v = reshape %a {shape = [k,floordiv(4, k)]} : f32[k,floordiv(4, k)]
  return %v
})");
    EXPECT_EQ(p.buffer("a").place, Buffer::Slot);
}

TEST(Memory, WhatABranchReadsLivesUntilTheIfEnds) {
    Planned p(R"(func @main(%c: bool[], %x: f32[4]) -> f32[4] {
  %a = softmax %x : f32[4]
  %r = if %c : f32[4] then {
    %t = softmax %a : f32[4]
    %u = softmax %t : f32[4]
    return %u
  } else {
    %e = softmax %x : f32[4]
    return %e
  }
  %b = softmax %r : f32[4]
  return %b
})");
    for (const char* other : {"t", "u", "e", "r"}) EXPECT_NE(p.slot("a"), p.slot(other)) << other;
    for (const char* other : {"t", "u", "e"}) EXPECT_NE(p.slot("r"), p.slot(other)) << other;
    // Only one of the branches runs.
    EXPECT_EQ(p.slot("t"), p.slot("e"));
}

// A branch writes all results at its end, so the place of one that nobody reads must not hold another.
TEST(Memory, UnreadResultsOfAnIfHaveAPlaceOfTheirOwn) {
    Planned p(R"(func @main(%c: bool[], %x: f32[4]) -> f32[4] {
  %r, %s = if %c : f32[4], f32[4] then {
    %t = softmax %x : f32[4]
    %u = softmax %t : f32[4]
    return %x, %u
  } else {
    return %x, %x
  }
  %b = softmax %s : f32[4]
  return %b
})");
    for (const char* other : {"s", "t", "u"}) EXPECT_NE(p.slot("r"), p.slot(other)) << other;
}

TEST(Memory, LoopsAlternateBetweenTwoSlotsPerCarriedValue) {
    Planned p(R"(func @main(%n: i64[], %x: f32[4], %y: f32[4]) -> f32[4] {
  %a = softmax %x : f32[4]
  %r = loop %n, _, %y {count = "k"} : f32[4] body (%i: i64[], %c: bool[], %v: f32[4]) {
    %s = softmax %v : f32[4]
    %t = add %s, %a : f32[4]
    %u = softmax %t : f32[4]
    return %c, %u
  }
  %b = softmax %r : f32[4]
  %d = softmax %b : f32[4]
  return %d
})");
    EXPECT_EQ(p.buffer("v").place, Buffer::Bound);
    EXPECT_EQ(p.buffer("r").place, Buffer::Bound);
    const auto& pair = p.plan.carried.begin()->second.at(0);
    int first = p.plan.buffers[static_cast<size_t>(pair.first)].index;
    int second = p.plan.buffers[static_cast<size_t>(pair.second)].index;
    EXPECT_NE(first, second);
    // `a` is read again by each iteration, the pair holds the result that `b` reads.
    for (const char* other : {"s", "t", "u"}) EXPECT_NE(p.slot("a"), p.slot(other)) << other;
    for (const char* other : {"a", "s", "t", "u", "b"}) {
        EXPECT_NE(p.slot(other), first) << other;
        EXPECT_NE(p.slot(other), second) << other;
    }
}

TEST(Memory, ValuesFromAroundNestedLoopsLiveToTheOutermostEnd) {
    Planned p(R"(func @main(%n: i64[], %x: f32[4]) -> f32[4] {
  %a = softmax %x : f32[4]
  %r = loop %n, _, %x {count = "k"} : f32[4] body (%i: i64[], %c: bool[], %v: f32[4]) {
    %o = softmax %v : f32[4]
    %q = loop %n, _, %v {count = "l"} : f32[4] body (%j: i64[], %d: bool[], %w: f32[4]) {
      %s = add %w, %a : f32[4]
      %t = add %s, %o : f32[4]
      %u = softmax %t : f32[4]
      return %d, %u
    }
    %e = softmax %q : f32[4]
    %f = softmax %e : f32[4]
    return %c, %f
  }
  return %r
})");
    for (const char* other : {"o", "t", "u", "e", "f"}) EXPECT_NE(p.slot("a"), p.slot(other)) << other;
    for (const char* other : {"t", "u"}) EXPECT_NE(p.slot("o"), p.slot(other)) << other;
}

TEST(Memory, CarriedValuesThatGrowComeFromTheHost) {
    Planned p(R"(func @main(%n: i64[], %x: f32[2]) -> f32[m] {
  %r = loop %n, _, %x {count = "k"} : f32[m] body (%i: i64[], %c: bool[], %v: f32[s]) {
    %w = concat %v, %x {axis = 0} : f32[s + 2]
    return %c, %w
  }
  return %r
})");
    EXPECT_EQ(p.plan.carried.begin()->second.at(0), std::pair(-1, -1));
    EXPECT_EQ(p.buffer("r").place, Buffer::Dynamic);
    EXPECT_EQ(p.buffer("w").place, Buffer::Dynamic);
}

TEST(Memory, EqualConstantsAreStoredOnce) {
    Planned p(R"(func @main(%x: f32[2]) -> (f32[2], f32[2]) {
  %c = constant [1.0, 2.0] : f32[2]
  %d = constant [1.0, 2.0] : f32[2]
  %a = softmax %x : f32[2]
  %b = add %a, %c : f32[2]
  %e = mul %a, %d : f32[2]
  return %b, %e
})");
    EXPECT_EQ(p.buffer("c").offset, p.buffer("d").offset);
    EXPECT_EQ(p.plan.constants.size(), 1u);
}

TEST(Memory, ASizeThatNoInputShowsIsRefused) {
    EXPECT_THROW(Planned(R"(func @main(%x: f32[2*N]) -> f32[2*N] {
  %a = relu %x : f32[2*N]
  return %a
})"),
                 Refused);
    // An input that may be left out shows none.
    EXPECT_THROW(Planned(R"(weight "w" : f32[2] = [1.0, 2.0]
func @main(%x: f32[N] default "w") -> f32[N] {
  %a = relu %x : f32[N]
  return %a
})"),
                 Refused);
}

TEST(Memory, ASizeThatOnlyANodeNamesIsRefused) {
    for (const char* text : {R"(func @main(%x: f32[N]) -> f32[M] {
  %a = relu %x : f32[M]
  return %a
})",
                             R"(func @main(%x: f32[N]) -> f32[N] {
  %a = slice %x {starts = [0], sizes = [min(M, N)], steps = [1]} : f32[min(M, N)]
  %b = pad %a {low = [N - min(M, N)], high = [0]} : f32[N]
  return %b
})",
                             R"(func @main(%x: f32[N]) -> i64[1] {
  %a = dims {values = [M]} : i64[1]
  return %a
})"})
        EXPECT_THROW(Planned{text}, Refused) << text;
}

} // namespace
} // namespace cuvil
