// SPDX-License-Identifier: Apache-2.0
// The wrappers. The linker redirects every call of dist_NAME in this program to __wrap_dist_NAME
// (functions.py writes the linker options), which calls libdist's function as __real_dist_NAME. Callbacks go
// through a trampoline.
#include <dist/experimental/coordinator.h>
#include <dist/experimental/rpc.h>
#include <dist/experimental/server.h>
#include <dist/tf.h>
#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "recorder.hpp"
#include "tests/golden/replay/worker_threads.hpp"

namespace golden::transcript {
namespace {

// More than any program reads from an endless source.
constexpr int64_t kLongestTable = 400;

// The positions of the replicas when one of them fails are random, and so is how long a worker has waited.
std::string error_literal() {
  const std::string_view text = dist_last_error();
  for (const std::string_view words : {"Details: ", "did not arrive within ", "the deadline of "}) {
    if (text.find(words) != text.npos) return "?";
  }
  return text_literal(text.data());
}

// ---- Recorded callbacks

template <class Fn, class... A>
dist_status invoke(Function& function, std::tuple<A...> all) {
  Log& log = *function.log;
  Line* const line = log.invocation(function.call, kKind<Fn>.name);
  const Log::Scope scope(line);
  {
    const Looking looking;
    Sink given{line->given, log, {}, true};
    each(kKind<Fn>.keys, all, Give(given));
  }
  std::get<sizeof...(A) - 1>(all) = function.user_data;
  const dist_status status = std::apply(reinterpret_cast<Fn>(function.fn), all);
  const Looking looking;
  Sink answered{line->answered, log, {}, true};
  answered.put("status", std::to_string(status));
  if (status == DIST_OK) {
    each(kKind<Fn>.keys, all, Answer(answered, false));
  } else if (!is_table<Fn>) {
    answered.put("error", error_literal());
  }
  return status;
}

template <class Fn>
struct Trampoline;
template <class... A>
struct Trampoline<dist_status (*)(A...)> {
  static dist_status call(A... arguments) {
    std::tuple<A...> all{arguments...};
    return invoke<dist_status (*)(A...)>(*static_cast<Function*>(std::get<sizeof...(A) - 1>(all)), all);
  }
};

void accumulate(void* acc, const void* in, int64_t count, dist_dtype dtype, void* user_data) {
  Function& function = *static_cast<Function*>(user_data);
  Line* const line = function.log->invocation(function.call, kAccumulate);
  const auto size = static_cast<int64_t>(count);
  line->given = {{"acc", literal_of(flat(acc, &size, dtype))}, {"in", literal_of(flat(in, &size, dtype))}};
  reinterpret_cast<dist_reduce_fn>(function.fn)(acc, in, count, dtype, function.user_data);
  line->answered = {{"acc", literal_of(flat(acc, &size, dtype))}};
}

// ---- Tables, which are read completely in advance

dist_status element(const Function& function, std::size_t file, int64_t index, dist_value** out) {
  const auto at = function.table.find({file, index});
  if (at == function.table.end()) {
    if (index >= kLongestTable) function.log->fault("a table is read further than it was recorded");
    return DIST_OUT_OF_RANGE;
  }
  if (at->second.status == DIST_OK) *out = dist_value_retain(at->second.value);
  return at->second.status;
}

dist_status source_element(dist_strategy*, int64_t index, dist_value** out, void* user_data) {
  return element(*static_cast<Function*>(user_data), 0, index, out);
}

dist_status file_element(dist_strategy*, std::size_t file, const char*, int64_t index, dist_value** out,
                         void* user_data) {
  return element(*static_cast<Function*>(user_data), file, index, out);
}

// Releases the program's own user_data.
void release(void* user_data) {
  const Function& function = *static_cast<Function*>(user_data);
  if (function.release != nullptr) function.release(function.user_data);
}

template <class Fn, class... First>
void read_table(Function& function, std::size_t file, First... first) {
  for (int64_t index = 0; index < kLongestTable; ++index) {
    Function::Element one;
    one.status = invoke<Fn>(function, std::tuple(first..., index, &one.value, static_cast<void*>(nullptr)));
    function.table[{file, index}] = one;
    if (one.status != DIST_OK) return;
    dist_value_release(one.value);  // the log keeps it
  }
}

// ---- Arguments

// Replaces the callbacks among a call's arguments by trampolines.
class Adapt {
 public:
  template <class... A, std::size_t... I>
  Adapt(Log& log, Line* line, std::tuple<A...>& all, std::index_sequence<I...>) : log_(log), line_(line) {
    if constexpr (sizeof...(A) != 0) (adapt<I>(all), ...);
  }

 private:
  template <std::size_t I, class... A>
  void adapt(std::tuple<A...>& all) {
    using Argument = std::tuple_element_t<I, std::tuple<A...>>;
    if constexpr (is_program<Argument>) {
      if (std::get<I>(all) == nullptr) return;
      Function* const function =
          log_.keep(line_, reinterpret_cast<void (*)()>(std::get<I>(all)), std::get<I + 1>(all));
      std::get<I + 1>(all) = function;
      if constexpr (std::is_same_v<Argument, dist_source_fn>) {
        read_table<Argument>(*function, 0, std::get<0>(all));
        std::get<I>(all) = source_element;
      } else if constexpr (std::is_same_v<Argument, dist_file_source_fn>) {
        for (std::size_t file = 0; file < std::get<2>(all); ++file) {
          read_table<Argument>(*function, file, std::get<0>(all), file, std::get<1>(all)[file]);
        }
        std::get<I>(all) = file_element;
      } else {
        std::get<I>(all) = Trampoline<Argument>::call;
      }
      if constexpr (is_table<Argument>) {
        function->release = std::get<I + 2>(all);
        std::get<I + 2>(all) = release;
      }
    } else if constexpr (std::is_same_v<Argument, const dist_cross_device_options*>) {
      options(std::get<I>(all), [&](dist_cross_device_options& own) {
        if (own.accumulate == nullptr) return;
        own.accumulate_user_data =
            log_.keep(line_, reinterpret_cast<void (*)()>(own.accumulate), own.accumulate_user_data);
        own.accumulate = accumulate;
      });
    } else if constexpr (std::is_same_v<Argument, const dist_variable_options*>) {
      options(std::get<I>(all), [&](dist_variable_options& own) {
        if (own.initial_fn == nullptr) return;
        own.initial_user_data =
            log_.keep(line_, reinterpret_cast<void (*)()>(own.initial_fn), own.initial_user_data);
        own.initial_fn = Trampoline<dist_initial_fn>::call;
      });
    }
  }

  template <class S, class Fn>
  void options(const S*& given, const Fn& change) {
    if (given == nullptr) return;
    S* const own = log_.keep(*given);
    change(*own);
    given = own;
  }

  Log& log_;
  Line* line_;
};

// ---- Recorded calls

template <class... A, std::size_t N>
Sink sink_of(Fields& to, Log& log, const std::array<const char*, N>& keys, std::tuple<A...>& all) {
  Sink sink{to, log};
  each(keys, all, sink.extents);
  return sink;
}

// The properties of a replica, a topology and an assignment do not change.
bool is_repeated(const Line& line) {
  if (line.name != "replica_id" && line.name != "replica_num_replicas" && line.name != "replica_strategy" &&
      !line.name.starts_with("topology_") && !line.name.starts_with("device_assignment_"))
    return false;
  const std::string text = to_text(line, 0);
  return std::any_of(line.above->below.begin(), line.above->below.end(), [&](const auto& one) {
    return one.get() != &line && one->name == line.name && to_text(*one, 0) == text;
  });
}

// Drops reads of a tensor whose elements have not changed, and queries of the size of the following answer.
template <class... A>
void drop_unless_news(Log& log, Line* line, const std::tuple<A...>& all) {
  if constexpr (std::is_same_v<std::tuple<A...>, std::tuple<const dist_value*, dist_tensor*>>) {
    if (!log.is_news(std::get<0>(all), literal_of(*std::get<1>(all)))) log.drop(line);
  } else if constexpr (std::is_same_v<std::tuple<A...>,
                                      std::tuple<const dist_device_assignment*, int32_t, int32_t, int32_t*,
                                                 std::size_t, std::size_t*>>) {
    if (std::get<3>(all) == nullptr) log.drop(line);
  } else if constexpr (std::is_same_v<std::tuple<A...>, std::tuple<const dist_cluster_spec*, const char*,
                                                                   int32_t*, std::size_t, std::size_t*>>) {
    if (std::get<2>(all) == nullptr) log.drop(line);
  } else if constexpr (std::is_same_v<std::tuple<A...>,
                                      std::tuple<const char*, int32_t*, std::size_t, std::size_t*>>) {
    if (std::get<1>(all) == nullptr) log.drop(line);
  }
}

template <bool kHasStatus, class R, class... A>
R record(std::string_view name, R (*real)(A...), const std::array<const char*, sizeof...(A)>& keys,
         std::tuple<A...> all) {
  Log* const log = Log::current();
  if (log == nullptr) return std::apply(real, all);
  Line* const line = log->call(std::string(name));
  {
    const Looking looking;
    Sink given = sink_of(line->given, *log, keys, all);
    each(keys, all, Give(given));
  }
  if constexpr (std::is_void_v<R>) {
    log->forget(std::get<0>(all));  // all calls without a result destroy an object
    return std::apply(real, all);
  } else {
    Adapt(*log, line, all, std::index_sequence_for<A...>{});
    const R returned = std::apply(real, all);
    const Looking looking;
    Sink answered = sink_of(line->answered, *log, keys, all);
    if constexpr (!kHasStatus) {
      put_returned(answered, name, returned);
      if (is_repeated(*line)) log->drop(line);
    } else {
      answered.put("status", std::to_string(returned));
      if (returned == DIST_OK) {
        each(keys, all, Answer(answered, makes_object(name)));
        drop_unless_news(*log, line, all);
      } else {
        answered.put("error", error_literal());
      }
    }
    return returned;
  }
}

// ---- Hand-written wrappers

struct Pieces {
  dist_text_fn fn;
  void* user_data;
  std::vector<std::string> texts;
};

void take_piece(const char* text, std::size_t size, void* user_data) {
  Pieces& pieces = *static_cast<Pieces*>(user_data);
  pieces.texts.emplace_back(text, size);
  pieces.fn(text, size, pieces.user_data);
}

dist_status expand_host_list(decltype(&dist_slurm_expand_host_list) real, const char* list, dist_text_fn fn,
                             void* user_data) {
  Log* const log = Log::current();
  if (log == nullptr || fn == nullptr) return real(list, fn, user_data);
  Line* const line = log->call("slurm_expand_host_list");
  if (list != nullptr) line->given = {{"host_list", text_literal(list)}};
  Pieces pieces{fn, user_data, {}};
  const dist_status status = real(list, take_piece, &pieces);
  line->answered = {{"status", std::to_string(status)}};
  if (status == DIST_OK) {
    const auto literal = [](const std::string& text) { return text_literal(text.c_str()); };
    line->answered.push_back({"out", array_of(pieces.texts.data(), pieces.texts.size(), literal)});
  } else {
    line->answered.push_back({"error", error_literal()});
  }
  return status;
}

struct Workers {
  golden_worker_fn fn;
  void* user_data;
  std::vector<Line*> lines;
};

void on_workers(decltype(&golden_on_workers) real, std::size_t n, golden_worker_fn fn, void* user_data) {
  Log* const log = Log::current();
  if (log == nullptr) return real(n, fn, user_data);
  Line* const line = log->call("workers");
  Workers all{fn, user_data, {}};
  for (std::size_t worker = 0; worker < n; ++worker) {
    all.lines.push_back(log->invocation(line, "worker"));
    all.lines.back()->given = {{"worker", std::to_string(worker)}};
  }
  const auto in_line = [](std::size_t worker, void* workers) {
    const Workers& given = *static_cast<Workers*>(workers);
    const Log::Scope scope(given.lines[worker]);
    given.fn(worker, given.user_data);
  };
  real(n, in_line, &all);
}

void is_in_no_transcript(const char* name) {
  if (Log* const log = Log::current()) log->fault(std::string("a call that is in no transcript: ") + name);
}

// A value of nullptr unsets the variable.
void record_environment(const char* name, const char* value) {
  Log* const log = Log::current();
  if (log == nullptr) return;
  Line* const line = log->call("setenv");
  line->given = {{"name", text_literal(name)}};
  if (value != nullptr) line->given.push_back({"value", text_literal(value)});
}

}  // namespace
}  // namespace golden::transcript

// NOLINTBEGIN(bugprone-reserved-identifier): names that the linker makes
#define FUNCTION(returns, name, parameters, arguments, ...)                                     \
  extern "C" returns __real_##name parameters;                                                  \
  extern "C" returns __wrap_##name parameters {                                                 \
    return golden::transcript::record<std::string_view(#returns) == "dist_status">(             \
        std::string_view(#name).substr(5), __real_##name, {__VA_ARGS__}, std::tuple arguments); \
  }
#include "functions.inc"

#define BY_GRPC(returns, name, parameters, arguments) \
  extern "C" returns __real_##name parameters;        \
  extern "C" returns __wrap_##name parameters {       \
    golden::transcript::is_in_no_transcript(#name);   \
    return __real_##name arguments;                   \
  }
#include "by_grpc.inc"

extern "C" dist_status __real_dist_slurm_expand_host_list(const char*, dist_text_fn, void*);
extern "C" dist_status __wrap_dist_slurm_expand_host_list(const char* host_list, dist_text_fn fn,
                                                          void* user_data) {
  return golden::transcript::expand_host_list(__real_dist_slurm_expand_host_list, host_list, fn, user_data);
}

extern "C" void __real_golden_on_workers(std::size_t, golden_worker_fn, void*);
extern "C" void __wrap_golden_on_workers(std::size_t n, golden_worker_fn fn, void* user_data) {
  golden::transcript::on_workers(__real_golden_on_workers, n, fn, user_data);
}

extern "C" int __real_setenv(const char*, const char*, int);
extern "C" int __wrap_setenv(const char* name, const char* value, int overwrite) {
  golden::transcript::record_environment(name, value);
  return __real_setenv(name, value, overwrite);
}
extern "C" int __real_unsetenv(const char*);
extern "C" int __wrap_unsetenv(const char* name) {
  golden::transcript::record_environment(name, nullptr);
  return __real_unsetenv(name);
}
// NOLINTEND(bugprone-reserved-identifier)
