// SPDX-License-Identifier: Apache-2.0
// One entry for each function in the table of TRANSCRIPTS.md (functions.inc), and one trampoline for each
// kind of callback.
#include "calls.hpp"

#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "make.hpp"

namespace golden::transcript {
namespace {

bool is_name(std::string_view literal) {
  return literal.size() > 1 && std::isdigit(static_cast<unsigned char>(literal[1])) != 0 &&
         std::string_view("srvxdictapqn").find(literal[0]) != std::string_view::npos &&
         literal.find_first_not_of("0123456789", 1) == literal.npos;
}

// Looks up the names in the expected fields.
class Lookup final : public Names {
 public:
  // With `binding` false, looks names up without binding them.
  Lookup(Player& player, const Fields& expected, bool binding)
      : player_(player), expected_(expected), binding_(binding) {}

  std::string known(char, const void* object) override { return player_.name_of(object); }
  std::string comes(char kind, const void* object, std::string_view key, bool fresh) override {
    const std::string* const name = find(expected_, key);
    if (!binding_ || name == nullptr || !is_name(*name)) return player_.name_of(object);
    if (!player_.bind(*name, const_cast<void*>(object), fresh && kind == 'r')) return "another object";
    if (fresh && kind != 'v' && kind != 'r') player_.own(*name);
    return *name;
  }

 private:
  Player& player_;
  const Fields& expected_;
  bool binding_;
};

// ---- The program's functions

template <class... A>
Fields given_to(Player& player, const auto& keys, std::tuple<A...>& all, const Fields& expected,
                bool binding) {
  Lookup names(player, expected, binding);
  Fields given;
  Sink sink{given, names, {}, true};
  each(keys, all, Give(sink));
  return given;
}

// Compares everything except the objects' names, which are bound when the line has been found.
bool fits(const Line& line, const Fields& given) {
  if (line.given.size() != given.size()) return false;
  for (const Field& field : given) {
    const std::string* const expected = find(line.given, field.key);
    if (expected == nullptr || (!is_name(*expected) && *expected != field.value)) return false;
  }
  return true;
}

// Applies the callback's changes before it makes any calls.
class Change {
 public:
  explicit Change(const Line& line) : line_(line) {}
  void operator()(std::string_view, dist_tensor* copy) {
    const std::string* const after = find(line_.answered, "copy");
    if (after == nullptr) return;
    const Elements elements = tensor_of(*after);
    std::memcpy(copy->data, elements.bytes.data(), elements.bytes.size());
  }
  void operator()(std::string_view key, const dist_update_place* place) { (*this)(key, place->copy); }
  void operator()(std::string_view, const auto&) {}

 private:
  const Line& line_;
};

// Returns the line's outcome to libdist.
class Return {
 public:
  Return(Player& player, const Line& line) : player_(player), line_(line) {}
  template <Object T>
  void operator()(std::string_view, T** out) {
    const std::string& name = *find(line_.answered, "result");
    *out = name == "-" ? nullptr : static_cast<T*>(player_.object(name));
    if constexpr (std::is_same_v<T, dist_value>) dist_value_retain(*out);
    player_.forget(name);  // it belongs to libdist from now on
  }
  void operator()(std::string_view, const auto&) {}

 private:
  Player& player_;
  const Line& line_;
};

// Plays the line of a callback.
template <class Fn, class... A>
dist_status perform_function(Player& player, const Line& line, std::tuple<A...>& all) {
  each(kKind<Fn>.keys, all, Change(line));
  // The lines of a table have already been played.
  if (!is_table<Fn> && !player.perform_below(line)) return dist_fail(DIST_UNKNOWN, "the player cannot go on");
  const auto status = static_cast<dist_status>(integer_of(*find(line.answered, "status")));
  if (status == DIST_OK) {
    each(kKind<Fn>.keys, all, Return(player, line));
    return DIST_OK;
  }
  const std::string* const error = find(line.answered, "error");
  if (error == nullptr) return status;
  return dist_fail(status, *error == "?" ? "a replica failed" : text_of(*error).c_str());
}

template <class Fn>
struct Trampoline;
template <class... A>
struct Trampoline<dist_status (*)(A...)> {
  using Fn = dist_status (*)(A...);

  static dist_status call(A... arguments) {
    std::tuple<A...> all{arguments...};
    const Played& played = *static_cast<Played*>(std::get<sizeof...(A) - 1>(all));
    Player& player = *played.player;
    try {
      const Line* const line = find_line(played, all);
      if (line != nullptr) {
        player.compare(*line, line->given, given_to(player, kKind<Fn>.keys, all, line->given, true));
        return perform_function<Fn>(player, *line, all);
      }
      player.fault(*played.call, std::string("its function was called as no line says: ") + kKind<Fn>.name);
    } catch (const Malformed& malformed) {
      player.fault(*played.call, malformed.what);
    }
    return dist_fail(DIST_UNKNOWN, "the player cannot go on");
  }

 private:
  static const Line* find_line(const Played& played, std::tuple<A...>& all) {
    const auto given = [&](const Line& line) {
      return given_to(*played.player, kKind<Fn>.keys, all, line.given, false);
    };
    if constexpr (is_table<Fn>) {
      for (const auto& line : played.call->below) {
        if (fits(*line, given(*line))) return line.get();
      }
      return nullptr;
    } else {
      return played.player->take(*played.call, [&](const Line& line) { return fits(line, given(line)); });
    }
  }
};

void accumulate(void* acc, const void* in, int64_t count, dist_dtype dtype, void* user_data) {
  const Played& played = *static_cast<Played*>(user_data);
  const auto size = static_cast<int64_t>(count);
  const Fields given = {{"acc", literal_of(flat(acc, &size, dtype))},
                        {"in", literal_of(flat(in, &size, dtype))}};
  const Line* const line =
      played.player->take(*played.call, [&](const Line& one) { return fits(one, given); });
  if (line == nullptr) return played.player->fault(*played.call, "accumulate was called as no line says");
  const Elements after = tensor_of(*find(line->answered, "acc"));
  std::memcpy(acc, after.bytes.data(), after.bytes.size());
}

// ---- Calls

template <bool kHasStatus, class R, class... A>
void perform(Player& player, const Line& line, R (*fn)(A...),
             const std::array<const char*, sizeof...(A)>& keys) {
  Make make(player, line);
  std::tuple<A...> all = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<A...>{make.template make<A>(keys[I])...};
  }
  (std::index_sequence_for<A...>{});
  if (line.name.ends_with("_destroy") && !line.given.empty()) player.forget(line.given[0].value);
  Lookup names(player, line.answered, true);
  Fields came;
  Sink sink{came, names};
  if constexpr (std::is_void_v<R>) {
    std::apply(fn, all);
  } else {
    const R returned = std::apply(fn, all);
    for (dist_value** value : make.values()) player.release_later(*value);
    each(keys, all, sink.extents);
    if constexpr (!kHasStatus) {
      put_returned(sink, line.name, returned);
    } else {
      sink.put("status", std::to_string(returned));
      if (returned == DIST_OK) {
        each(keys, all, Answer(sink, makes_object(line.name)));
      } else {
        sink.put("error", text_literal(dist_last_error()));
      }
    }
  }
  player.compare(line, line.answered, came);
}

// Compares each piece of the result with a call of the function.
void expand_host_list(Player& player, const Line& line) {
  const std::string* const given = find(line.given, "host_list");
  const std::string list = given == nullptr ? "" : text_of(*given);
  std::vector<std::string> hosts;
  const dist_status status = dist_slurm_expand_host_list(
      given == nullptr ? nullptr : list.c_str(),
      [](const char* text, std::size_t size, void* to) {
        static_cast<std::vector<std::string>*>(to)->emplace_back(text, size);
      },
      &hosts);
  Fields came = {{"status", std::to_string(status)}};
  if (status == DIST_OK) {
    came.push_back({"out", array_of(hosts.data(), hosts.size(),
                                    [](const std::string& host) { return text_literal(host.c_str()); })});
  } else {
    came.push_back({"error", text_literal(dist_last_error())});
  }
  player.compare(line, line.answered, came);
}

void set_environment(Player&, const Line& line) {
  const std::string* const value = find(line.given, "value");
  const std::string name = text_of(*find(line.given, "name"));
  if (value == nullptr) {
    unsetenv(name.c_str());
  } else {
    setenv(name.c_str(), text_of(*value).c_str(), 1);
  }
}

// Plays each worker's calls on a separate thread.
void on_workers(Player& player, const Line& line) {
  std::vector<std::thread> threads;
  for (const auto& worker : line.below) {
    player.take(line, [&](const Line& one) { return &one == worker.get(); });
    threads.emplace_back([&] { player.perform_below(*worker); });
  }
  for (std::thread& thread : threads) thread.join();
}

struct Entry {
  std::string_view name;
  Perform perform;
};
#define FUNCTION(returns, name, parameters, arguments, ...)                                   \
  {std::string_view(#name).substr(5), [](Player& player, const Line& line) {                  \
     perform<std::string_view(#returns) == "dist_status">(player, line, name, {__VA_ARGS__}); \
   }},
constexpr Entry kCalls[] = {
    {"setenv", set_environment},
    {"slurm_expand_host_list", expand_host_list},
    {"workers", on_workers},
#include "functions.inc"
};

}  // namespace

template <class Fn>
Fn trampoline_of() {
  if constexpr (std::is_same_v<Fn, dist_reduce_fn>) {
    return accumulate;
  } else if constexpr (is_program<Fn>) {
    return Trampoline<Fn>::call;
  } else {
    return nullptr;  // functions that release a user_data are not needed, because the player keeps it
  }
}

const Perform* find_call(std::string_view name) noexcept {
  for (const Entry& entry : kCalls) {
    if (entry.name == name) return &entry.perform;
  }
  return nullptr;
}

}  // namespace golden::transcript
