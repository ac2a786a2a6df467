// SPDX-License-Identifier: Apache-2.0
#include "settle.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <set>
#include <string_view>

namespace golden::transcript {
namespace {

// Calls fn(object) for each reference in a text. Returns the text with the references replaced by the
// results.
template <class Fn>
std::string replace_references(std::string_view text, const Fn& fn) {
  std::string replaced;
  for (;;) {
    const std::size_t begin = text.find('@');
    replaced += text.substr(0, begin);
    if (begin == text.npos) return replaced;
    const std::size_t end = text.find('@', begin + 1);
    std::size_t object = 0;
    std::from_chars(text.data() + begin + 1, text.data() + end, object);
    replaced += fn(object);
    text.remove_prefix(end + 1);
  }
}

template <class Fn>
void each_reference(const Fields& fields, const Fn& fn) {
  for (const Field& field : fields) {
    replace_references(field.value, [&](std::size_t object) {
      fn(object);
      return "";
    });
  }
}

bool is_call(const Line& line) {
  std::size_t depth = 0;
  for (const Line* above = line.above; above != nullptr; above = above->above) ++depth;
  return depth % 2 == 1;  // the root is above all
}

// Calls fn(line, is_call) for each line, and for a line before those below it.
template <class Fn>
void each_line(Line& root, const Fn& fn, bool call = true) {
  for (const auto& line : root.below) {
    fn(*line, call);
    each_line(*line, fn, !call);
  }
}

// Visits the objects that a line needs: the arguments of a call, or the results of a callback.
template <class Fn>
void each_use(const Line& line, bool call, const Fn& fn) {
  each_reference(call ? line.given : line.answered, fn);
}

bool is_getter(const Line& line) { return line.name == "value_item" || line.name == "value_get"; }

// Returns the object that a call made, or -1.
std::size_t made_by(const Line& line) {
  std::size_t object = static_cast<std::size_t>(-1);
  if (const std::string* const out = find(line.answered, "out")) {
    replace_references(*out, [&](std::size_t found) {
      object = found;
      return "";
    });
  }
  return object;
}

// ---- Getters of items

void drop_unused_getters(Line& root) {
  for (bool changed = true; changed;) {
    changed = false;
    std::set<std::size_t> used;
    each_line(root, [&](const Line& line, bool call) {
      each_use(line, call, [&](std::size_t object) { used.insert(object); });
    });
    const auto is_unused = [&](const std::unique_ptr<Line>& line) {
      return is_getter(*line) && !used.contains(made_by(*line));
    };
    const std::function<void(Line&)> drop = [&](Line& line) {
      changed = std::erase_if(line.below, is_unused) != 0 || changed;
      for (const auto& below : line.below) drop(*below);
    };
    drop(root);
  }
}

// ---- Values that replicas share

std::vector<Line*> path_of(Line* line) {
  std::vector<Line*> path;
  for (; line != nullptr; line = line->above) path.insert(path.begin(), line);
  return path;
}

// Returns the deepest callback (or root) that contains both.
Line* common(Line* a, Line* b) {
  const std::vector<Line*> one = path_of(a);
  const std::vector<Line*> other = path_of(b);
  Line* deepest = one[0];
  for (std::size_t i = 0; i < std::min(one.size(), other.size()) && one[i] == other[i]; i += 1) {
    if (i % 2 == 0) deepest = one[i];
  }
  return deepest;
}

bool makes_value(const Line& line) {
  return line.name == "value_create_tensor" || line.name == "value_create_text" ||
         line.name == "value_create_none";
}
bool makes_strategy(const Line& line) { return line.name == "strategy_create"; }

bool mentions(const Fields& fields, std::size_t object) {
  bool found = false;
  each_reference(fields, [&](std::size_t one) { found = found || one == object; });
  return found;
}

// Whether the user got the object by another way than from its maker: from an earlier answer, or as an
// argument of a callback.
bool has_come_to(const Line& user, std::size_t object, const Line& maker) {
  for (const Line* line = &user; line->above != nullptr; line = line->above) {
    if (!is_call(*line)) {
      if (mentions(line->given, object)) return true;
      continue;
    }
    for (const auto& before : line->above->below) {
      if (before.get() == line) break;
      if (before.get() != &maker && mentions(before->answered, object)) return true;
    }
  }
  return false;
}

std::string without_references(const Line& line) {
  return replace_references(to_text(line, 0), [](std::size_t) { return ""; });
}

struct Move {
  Line* from;  // the call
  Line* to;    // the callback to which it moves
};

// Inserts it before the first call there that leads to the value's maker or to a user.
void move(const Move& one, const std::vector<Line*>& users) {
  auto& calls = one.to->below;
  auto& before = one.from->above->below;
  const auto leads_to_user = [&](const std::unique_ptr<Line>& call) {
    return std::any_of(users.begin(), users.end(), [&](Line* user) {
      const std::vector<Line*> path = path_of(user);
      return std::find(path.begin(), path.end(), call.get()) != path.end();
    });
  };
  const auto at =
      std::find_if(before.begin(), before.end(), [&](const auto& call) { return call.get() == one.from; });
  std::unique_ptr<Line> call = std::move(*at);
  before.erase(at);
  call->above = one.to;
  calls.insert(std::find_if(calls.begin(), calls.end(), leads_to_user), std::move(call));
}

void move_shared(Line& root, bool (*may_move)(const Line& line)) {
  std::vector<std::pair<std::size_t, Line*>> made;
  std::map<std::size_t, std::vector<Line*>> users;
  each_line(root, [&](Line& line, bool call) {
    if (call && may_move(line) && made_by(line) != static_cast<std::size_t>(-1))
      made.emplace_back(made_by(line), &line);
    each_use(line, call, [&](std::size_t object) { users[object].push_back(&line); });
  });
  std::vector<std::pair<std::string, Move>> moves;
  for (const auto& one : made) {
    Line* const maker = one.second;
    std::vector<Line*>& of_it = users[one.first];
    std::erase_if(of_it, [&](Line* user) { return has_come_to(*user, one.first, *maker); });
    Line* in = maker->above;
    for (Line* user : of_it) in = common(in, is_call(*user) ? user->above : user);
    of_it.push_back(maker);
    if (in != maker->above) moves.emplace_back(without_references(*maker), Move{maker, in});
  }
  std::stable_sort(moves.begin(), moves.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [text, one] : moves) move(one, users[made_by(*one.from)]);
}

// ---- Concurrent callbacks

void sort_concurrent(Line& call) {
  const std::set<std::string_view> kConcurrent = {"replica", "update", "accumulate"};
  const auto key = [](const Line& line) {
    const std::string* const id = find(line.given, line.name == "replica" ? "id" : "replica");
    return std::pair(id == nullptr ? 0 : std::stoi(*id), without_references(line));
  };
  if (!call.below.empty() && kConcurrent.contains(call.below[0]->name)) {
    std::stable_sort(call.below.begin(), call.below.end(),
                     [&](const auto& a, const auto& b) { return key(*a) < key(*b); });
  }
  for (const auto& function : call.below) {
    for (const auto& below : function->below) sort_concurrent(*below);
  }
}

// ---- Names

class Naming {
 public:
  explicit Naming(const std::vector<char>& kinds) : kinds_(kinds), names_(kinds.size()) {}

  void name(Line& line) {
    for (Fields* fields : {&line.given, &line.answered}) {
      for (Field& field : *fields) {
        field.value = replace_references(field.value, [&](std::size_t object) { return name_of(object); });
      }
    }
    for (const auto& below : line.below) name(*below);
  }

 private:
  std::string name_of(std::size_t object) {
    std::string& name = names_[object];
    if (name.empty()) name = kinds_[object] + std::to_string(++counts_[kinds_[object]]);
    return name;
  }

  const std::vector<char>& kinds_;
  std::vector<std::string> names_;
  std::map<char, std::size_t> counts_;
};

}  // namespace

std::string reference(std::size_t object) {
  return std::string(1, '@').append(std::to_string(object)).append("@");
}

void settle(Line& root, const std::vector<char>& kinds) {
  drop_unused_getters(root);
  for (const auto& call : root.below) sort_concurrent(*call);
  move_shared(root, makes_value);
  move_shared(root, makes_strategy);
  for (const auto& call : root.below) sort_concurrent(*call);  // again, without the values that have moved
  Naming(kinds).name(root);
}

}  // namespace golden::transcript
