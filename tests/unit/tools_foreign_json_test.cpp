#include "foreign_json.hpp"

#include <gtest/gtest.h>

namespace cuvil::cli {
namespace {

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(ForeignJson, IsReadAsItIs) {
    EXPECT_EQ(parse_foreign(R"({"b":[1,{"a":null}],"a":"x"})")->dump(), R"({"b":[1,{"a":null}],"a":"x"})");
    EXPECT_TRUE(parse_foreign(nested(200)));
}

TEST(ForeignJson, WhatIsNoneOrTooDeepIsNothing) {
    for (const std::string& text : {std::string(), std::string("{"), std::string("[1,]"), nested(202),
                                    nested(1'000'000), "{\"a\":" + nested(300) + ",\"b\":1}"})
        EXPECT_FALSE(parse_foreign(text)) << text.substr(0, 20);
}

} // namespace
} // namespace cuvil::cli
