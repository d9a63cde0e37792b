// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "wire/template_text.h"

namespace weighbridge::wire {
namespace {

std::string said(std::string_view text) {
  const auto fault = template_fault(text);
  return !fault ? "" : (fault->escapes ? "escape " : "syntax ") + fault->found;
}

TEST(ChatTemplate, OrdinaryTemplatesAreQuiet) {
  for (const std::string_view text :
       {"", "plain { text } {", "{{ messages[0]['content'] }}",
        "{%- for m in messages if m.role != \"user\" -%}{% endfor %}", "{# {{ ''.__class__ }} #}",
        "{% raw %}{{ ''.__class__ }}{% endraw %}after", "{% set _ = ns.update({'a': 1}) %}",
        "{{ '%s: %s'|format(a, b) }}", "{{ '{} and {:.2f}'.format(a, b) }}",
        "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join('\\n') }}",
        "{{- raise_exception(\"it's \\\"bad\\\"\") }}",
        "{% generation %}{{ {'a': [1, 2.5e3]}['a'][0] }}{% endgeneration %}",
        "{% macro f(x, y=none) %}{{ x ~ '__' ~ y }}{% endmacro %}", "__class__ in text"})
    EXPECT_EQ(said(text), "") << text;
}

TEST(ChatTemplate, WhatLeavesTheSandboxIsNamed) {
  EXPECT_EQ(said("{{ ''.__class__.__mro__ }}"), "escape __class__");
  EXPECT_EQ(said("{{ x['__class__'] }}"), "escape __class__");
  EXPECT_EQ(said("{{ x['\\x5f\\x5fclass\\137_'] }}"), "escape __class__");
  EXPECT_EQ(said("{{ x._hidden }}"), "escape _hidden");
  EXPECT_EQ(said("{{ x | attr('na' ~ 'me') }}"), "escape the filter attr");
  EXPECT_EQ(said("{{ x|map(attribute='__class__') }}"), "escape __class__");
  EXPECT_EQ(said("{{ '{0.__init__}'.format(x) }}"), "escape {0.__init__}");
  EXPECT_EQ(said("{{ '{0.a}'.format(x) }}"), "escape format");
  EXPECT_EQ(said("{{ form.format(x) }}"), "escape format");
  EXPECT_EQ(said("{{ x['format'](y) }}"), "escape format");
  EXPECT_EQ(said("{%- import 'os' as os %}"), "escape import");
  EXPECT_EQ(said("{% from 'a' import b %}"), "escape from");
  EXPECT_EQ(said("{%+ include 'secret' %}"), "escape include");
  EXPECT_EQ(said("{% extends 'a' %}"), "escape extends");
  EXPECT_EQ(said("{{ f.gi_frame }}"), "escape gi_frame");
  EXPECT_EQ(said("{{ ( }}{{ x.__globals__ }}"), "syntax unmatched }");  // no program compiles it
}

TEST(ChatTemplate, BrokenSyntaxIsNamed) {
  EXPECT_EQ(said("{{ a "), "syntax a tag without an end");
  EXPECT_EQ(said("{% if a"), "syntax a tag without an end");
  EXPECT_EQ(said("{# a"), "syntax a comment without an end");
  EXPECT_EQ(said("{% raw %} a"), "syntax raw text without an end");
  EXPECT_EQ(said("{{ 'a }}"), "syntax a string without an end");
  EXPECT_EQ(said("{{ a) }}"), "syntax unmatched )");
  EXPECT_EQ(said("{{ a ? b }}"), "syntax the character ?");
}

}  // namespace
}  // namespace weighbridge::wire
