// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/inspect.hpp: descriptions, traces, metrics and tables of libdist's own activity (inspect.h).
//
//     std::cout << strategy.explain();                                                // configuration of the strategy
//     std::ofstream("trace.json") << strategy.write_trace();                          // open the file in Perfetto
//     for (const dist_straggler &late : strategy.stragglers())
//       std::cout << "replica " << late.replica << " was last " << late.times_last << " times\n";
#ifndef DIST_HPP_INSPECT_HPP
#define DIST_HPP_INSPECT_HPP

#include "variable.hpp"

namespace dist {

namespace detail {

// Collects the text that write(fn, user_data) passes to fn.
template <class Write>
std::string text_of(Write &&write) {
  struct pieces {
    std::string text{};
    failures thrown{};
  } all;
  check(write(
      [](const char *text, std::size_t size_bytes, void *user_data) {
        auto &self = *static_cast<pieces *>(user_data);
        (void)shielded(self.thrown, 0, [&] { self.text.append(text, size_bytes); });
      },
      &all));
  all.thrown.rethrow_of(0);  // if memory was exhausted
  return std::move(all.text);
}

}  // namespace detail

inline std::string strategy_ref::explain() const {
  return detail::text_of(
      [&](dist_text_fn fn, void *user_data) { return dist_strategy_explain(handle_, fn, user_data); });
}

// A trace in Chrome's trace-event format, for Perfetto.
inline std::string strategy_ref::write_trace() const {
  return detail::text_of(
      [&](dist_text_fn fn, void *user_data) { return dist_strategy_write_trace(handle_, fn, user_data); });
}
// Metrics in Prometheus' text format.
inline std::string strategy_ref::write_metrics(const char *name) const {
  return detail::text_of([&](dist_text_fn fn, void *user_data) {
    return dist_strategy_write_metrics(handle_, name, fn, user_data);
  });
}
// The replicas that arrive last, sorted by how often.
inline std::vector<dist_straggler> strategy_ref::stragglers() const {
  std::vector<dist_straggler> rows;
  std::size_t n = 0;
  do {  // the number can grow while replicas run
    rows.resize(n);
    check(dist_strategy_stragglers(handle_, rows.data(), sizeof(dist_straggler), rows.size(), &n));
  } while (n > rows.size());
  rows.resize(n);
  return rows;
}
inline std::string value::describe() const {
  return detail::text_of(
      [&](dist_text_fn fn, void *user_data) { return dist_value_describe(handle_, fn, user_data); });
}
inline std::string variable_ref::describe() const {
  return detail::text_of(
      [&](dist_text_fn fn, void *user_data) { return dist_variable_describe(handle_, fn, user_data); });
}

}  // namespace dist

#endif  // DIST_HPP_INSPECT_HPP
