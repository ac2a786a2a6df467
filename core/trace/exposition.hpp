// SPDX-License-Identifier: Apache-2.0
// Writes counters and gauges in Prometheus' text exposition format (version 0.0.4).
#pragma once

#include <cinttypes>
#include <cstdint>

#include "core/base/text.hpp"
#include "core/base/text_out.hpp"

namespace dist {

class Exposition {
 public:
  // `strategy`: the label of every sample, as untrusted bytes; NULL: none.
  Exposition(const char* strategy, TextOut& out) noexcept : strategy_(strategy), out_(out) {}

  void family(const char* name, const char* type, const char* help) {
    out_.add("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
  }

  // Begins a sample: its name, then its labels, then its value.
  void sample(const char* name) {
    out_.put(name);
    labels_ = 0;
    if (strategy_ != nullptr) label("strategy", strategy_);
  }
  void label(const char* name, const char* text) {
    begin_label(name);
    while (*text != '\0') {
      char shown[kShownRoom];
      text += show_character(text, Keep::kBreaks, shown);
      for (const char* c = shown; *c != '\0'; ++c) put_escaped(*c);
    }
    out_.Put('"');
  }
  void label(const char* name, int number) {
    begin_label(name);
    out_.add("%d\"", number);
  }
  void value(uint64_t number) {
    end_labels();
    out_.add(" %" PRIu64 "\n", number);
  }
  void seconds(uint64_t ns) {
    end_labels();
    out_.add(" %" PRIu64 ".%09" PRIu64 "\n", ns / 1'000'000'000, ns % 1'000'000'000);
  }

  // Writes a family with one sample.
  void single(const char* name, const char* type, const char* help, uint64_t number) {
    family(name, type, help);
    sample(name);
    value(number);
  }

 private:
  void begin_label(const char* name) {
    out_.put(labels_++ == 0 ? "{" : ",");
    out_.put(name);
    out_.put("=\"");
  }
  void end_labels() {
    if (labels_ != 0) out_.Put('}');
  }
  void put_escaped(char c) {
    if (c == '\n') return out_.put("\\n");
    if (c == '\\' || c == '"') out_.Put('\\');
    out_.Put(c);
  }

  const char* strategy_;
  TextOut& out_;
  int labels_ = 0;
};

}  // namespace dist
