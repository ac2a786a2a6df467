// SPDX-License-Identifier: Apache-2.0
// Defines how the parameters of functions and callbacks appear in a transcript: Give writes the fields of
// inputs, Answer those of outputs. The parameter's type determines the form; if it is ambiguous, so does its
// name in the headers. The recorder and the player are generated from this, with one line of text per
// function (functions.py).
#pragma once

#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "extents.hpp"
#include "line.hpp"
#include "literals.hpp"
#include "structs.hpp"

namespace golden::transcript {

// The letter with which an object's name begins; 0 for other types.
template <class T>
constexpr char kLetter = 0;
template <>
inline constexpr char kLetter<dist_strategy> = 's';
template <>
inline constexpr char kLetter<dist_replica> = 'r';
template <>
inline constexpr char kLetter<dist_value> = 'v';
template <>
inline constexpr char kLetter<dist_variable> = 'x';
template <>
inline constexpr char kLetter<dist_dataset> = 'd';
template <>
inline constexpr char kLetter<dist_iterator> = 'i';
template <>
inline constexpr char kLetter<dist_cross_device> = 'c';
template <>
inline constexpr char kLetter<dist_topology> = 't';
template <>
inline constexpr char kLetter<dist_device_assignment> = 'a';
template <>
inline constexpr char kLetter<dist_cluster_spec> = 'p';
template <>
inline constexpr char kLetter<dist_cluster_resolver> = 'q';
template <>
inline constexpr char kLetter<dist_network> = 'n';
template <class T>
concept Object = kLetter<std::remove_const_t<T>>
!= 0;

inline std::string text_literal(const char* text) { return text == nullptr ? "-" : "t:" + encode_text(text); }

// Calls that return a new object.
inline bool makes_object(std::string_view call) {
  for (const std::string_view end : {"_build", "_from_json", "_spec_union", "_resolver_spec"}) {
    if (call.ends_with(end)) return true;
  }
  return call.find("_create") != call.npos;
}

inline std::string bytes_literal(const void* bytes, std::size_t size) {
  const auto count = static_cast<int64_t>(size);
  return literal_of({const_cast<void*>(bytes), DIST_U8, 1, &count, nullptr});
}

template <class T, class Literal>
std::string array_of(const T* items, std::size_t n, const Literal& literal) {
  std::string text = "(";
  for (std::size_t i = 0; i < n; ++i) text.append(i == 0 ? "" : " ").append(literal(items[i]));
  return text.append(")");
}
template <Number T>
std::string array_of(const T* numbers, std::size_t n) {
  return array_of(numbers, n, [](T number) { return std::to_string(number); });
}

// Where fields are written, and the names of objects.
struct Sink {
  Fields& to;
  Names& names;
  Extents extents{};
  bool of_program = false;  // libdist calls a function of the program

  void put(std::string key, std::string value) { to.push_back({std::move(key), std::move(value)}); }
  void put(std::string_view key, const dist_value* value, bool fresh) {
    put(std::string(key), names.comes('v', value, key, fresh));
    put(std::string(key).append(".is"), tree_of(value, names));
  }
};

// Writes the result of a call without a status.
template <class R>
void put_returned(Sink& sink, std::string_view call, R returned) {
  using T = std::remove_const_t<std::remove_pointer_t<R>>;
  if constexpr (Number<R>) {
    sink.put("out", std::to_string(returned));
  } else if constexpr (std::is_same_v<R, const char*>) {
    sink.put("out", text_literal(returned));
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    sink.put("out", bytes_literal(returned, sink.extents.bytes));
  } else if constexpr (Number<T>) {
    for (const std::string_view object : {"topology_", "device_assignment_"}) {
      if (call.starts_with(object))
        sink.put("out", array_of(returned, sink.extents.of(call.substr(object.size()))));
    }
  } else {
    sink.put("out", returned == nullptr ? "-" : sink.names.comes(kLetter<T>, returned, "out", false));
    // The list's tree already shows which value an item is.
    if constexpr (kLetter<T> == 'v') {
      if (returned != nullptr && !call.starts_with("value_")) {
        sink.put("out.is", tree_of(returned, sink.names));
      }
    }
  }
}

class Give {
 public:
  explicit Give(Sink& sink) : sink_(sink) {}

  template <Number T>
  void operator()(std::string_view key, T number) {
    // Sizes of arrays; the player uses its own buffers.
    for (const std::string_view one :
         {"num_axes", "num_specs", "num_resolvers", "num_jobs", "size_bytes", "capacity"}) {
      if (key == one) return;
    }
    put(key, std::to_string(number));
  }
  void operator()(std::string_view key, const char* text) {
    if (text != nullptr) put(key, text_literal(text));
  }
  template <Object T>
  void operator()(std::string_view key, T* object) {
    if (object == nullptr || key.empty()) return;
    constexpr char kind = kLetter<std::remove_const_t<T>>;
    if (!sink_.of_program) return put(key, sink_.names.known(kind, object));
    if constexpr (kind == 'v') return sink_.put(key, object, false);
    put(key, sink_.names.comes(kind, object, key, kind == 'r'));
    if constexpr (kind == 'r') put("id", std::to_string(dist_replica_id(object)));
  }
  template <Object T>
  void operator()(std::string_view key, T* const* objects) {
    if (objects == nullptr) return;
    put(key, array_of(objects, sink_.extents.n, [&](T* object) {
          return object == nullptr ? "-" : sink_.names.known(kLetter<std::remove_const_t<T>>, object);
        }));
  }
  void operator()(std::string_view key, const char* const* texts) {
    if (texts != nullptr) put(key, array_of(texts, sink_.extents.n, text_literal));
  }
  void operator()(std::string_view key, const int32_t* numbers) {
    if (numbers != nullptr) put(key, array_of(numbers, sink_.extents.of(key)));
  }
  void operator()(std::string_view key, const int64_t* numbers) {
    if (numbers != nullptr) put(key, array_of(numbers, sink_.extents.of(key)));
  }
  void operator()(std::string_view key, const void* bytes) {
    if (bytes != nullptr) put(key, bytes_literal(bytes, sink_.extents.bytes));
  }
  void operator()(std::string_view key, const dist_tensor* tensors) {
    if (tensors == nullptr) return;
    const Extents& extents = sink_.extents;
    if (key == "out") {  // the caller's memory, to which the call writes
      return put("out.shape",
                 extents.has_arrays ? array_of(tensors, extents.n, shape_of) : shape_of(*tensors));
    }
    put(key, extents.has_arrays ? array_of(tensors, extents.n, literal_of) : literal_of(*tensors));
  }
  // The copy that a callback changes.
  void operator()(std::string_view key, dist_tensor* tensors) {
    if (tensors != nullptr && key == "copy") put(key, literal_of(*tensors));
  }
  template <Struct S>
  void operator()(std::string_view key, const S* all) {
    if (all == nullptr) {
      if (std::is_same_v<S, dist_destination>) put(key, "-");
    } else if (key == "destinations" || key == "jobs") {
      for (std::size_t i = 0; i < sink_.extents.n; ++i) fields(std::string(key) + std::to_string(i), all[i]);
    } else {
      fields(sink_.of_program ? "" : key, *all);
    }
  }
  template <class R, class... A>
  void operator()(std::string_view key, R (*fn)(A...)) {
    if (fn != nullptr && key == "fn") put(key, "1");
  }
  // Omits outputs and data of callbacks.
  template <class T>
  requires(!std::is_const_v<T> && !Object<T> && !std::is_function_v<T>) void operator()(std::string_view,
                                                                                        T*) {}

 private:
  void put(std::string_view key, std::string value) { sink_.put(std::string(key), std::move(value)); }

  template <class S>
  void fields(std::string_view prefix, const S& all) {
    const std::string before = prefix.empty() ? "" : std::string(prefix) + ".";
    walk(const_cast<S&>(all), [&](const char* name, auto& field, const std::size_t* n = nullptr) {
      field_of(before + name, field, n);
    });
    if constexpr (std::is_same_v<S, dist_slurm_options>) {
      for (std::size_t i = 0; i < all.num_jobs; ++i) fields(before + "jobs" + std::to_string(i), all.jobs[i]);
    }
  }

  template <class F>
  void field_of(const std::string& key, F& field, const std::size_t* n) {
    using Pointed = std::remove_pointer_t<F>;
    if (field == F{}) {
      if (sink_.of_program) put(key, "0");
    } else if constexpr (std::is_same_v<F, Unsupported>) {  // NOLINT(bugprone-branch-clone)
      throw std::logic_error(key + " cannot be written into a transcript");
    } else if constexpr (Number<F>) {
      put(key, std::to_string(field));
    } else if constexpr (std::is_same_v<F, const char*>) {
      put(key, text_literal(field));
    } else if constexpr (std::is_function_v<Pointed>) {
      put(key, "1");
    } else if constexpr (std::is_same_v<F, const char* const*>) {
      put(key, array_of(field, *n, text_literal));
    } else if constexpr (std::is_same_v<F, const int64_t*> || std::is_same_v<F, const int32_t*>) {
      put(key, array_of(field, *n));
    } else if constexpr (std::is_same_v<F, dist_tensor*>) {
      put(key, literal_of(*field));
    } else {
      put(key, sink_.names.known(kLetter<std::remove_const_t<Pointed>>, field));
    }
  }

  Sink& sink_;
};

// Writes "out_value" as "out", or as "result" for functions of the program.
class Answer {
 public:
  // With `fresh`, objects that appear are new.
  Answer(Sink& sink, bool fresh) : sink_(sink), fresh_(fresh) {}

  template <Object T>
  void operator()(std::string_view key, T** objects) {
    if (key != "out_values") return object(sink_.of_program ? "result" : "out", *objects);
    for (std::size_t i = 0; i < sink_.extents.n; ++i) object("out" + std::to_string(i), objects[i]);
  }
  template <Object T>
  void object(const std::string& key, T* object) {
    constexpr char kind = kLetter<T>;
    if (object == nullptr) return sink_.put(key, "-");
    if (sink_.of_program) return sink_.put(key, sink_.names.known(kind, object));
    if constexpr (kind == 'v') return sink_.put(key, object, false);
    sink_.put(key, sink_.names.comes(kind, object, key, fresh_));
  }
  void operator()(std::string_view, const char** text) { sink_.put("out", text_literal(*text)); }
  void operator()(std::string_view, char* text) { sink_.put("out", text_literal(text)); }
  template <class T>
  requires(std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> || std::is_enum_v<T>) void operator()(
      std::string_view key, T* numbers) {
    if (numbers == nullptr) return;
    const Extents& extents = sink_.extents;
    const bool is_part = extents.is_divided && key != "out_elements";
    bool is_array = is_part;
    for (const std::string_view one :
         {"out_sizes", "out_coordinates", "out_replicas", "out_indices", "out_tasks", "out_partitions"}) {
      is_array = is_array || key == one;
    }
    sink_.put(extents.is_divided || key == "out_is_set" ? "out." + std::string(key.substr(4)) : "out",
              is_array ? array_of(numbers, extents.of(key)) : std::to_string(*numbers));
  }
  void operator()(std::string_view key, dist_tensor* tensors) {
    if (key == "copy") return sink_.put("copy", literal_of(*tensors));
    (*this)("out", static_cast<const dist_tensor*>(tensors));
  }
  void operator()(std::string_view key, const dist_tensor* tensors) {
    if (key != "out") return;
    const Extents& extents = sink_.extents;
    sink_.put("out", extents.has_arrays ? array_of(tensors, extents.n, literal_of) : literal_of(*tensors));
  }
  void operator()(std::string_view, const dist_update_place* place) {
    if (place->copy != nullptr) sink_.put("copy", literal_of(*place->copy));
  }
  template <Struct S>
  requires(!std::is_const_v<S>) void operator()(std::string_view, S* all) {
    walk(*all, [&](const char* name, auto& field) {
      if constexpr (Number<std::remove_reference_t<decltype(field)>>)
        sink_.put(std::string("out.") + name, std::to_string(field));
    });
  }
  void operator()(std::string_view, const auto&) {}

 private:
  Sink& sink_;
  bool fresh_;
};

}  // namespace golden::transcript
