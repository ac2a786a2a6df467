// SPDX-License-Identifier: Apache-2.0
// Creates a call's arguments from its line, according to each parameter's type and name in the headers, as
// written by params.hpp.
#pragma once

#include <dist/tf.h>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "player.hpp"
#include "program.hpp"
#include "tests/golden/harness/json.hpp"

namespace golden::transcript {

// Sizes of buffers for outputs.
constexpr std::size_t kTextBytes = 512;
constexpr std::size_t kNumbers = 512;

inline int64_t integer_of(std::string_view literal) {
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(literal.data(), literal.data() + literal.size(), number);
  if (error != std::errc{} || stop != literal.data() + literal.size()) {
    throw Malformed{"\"" + std::string(literal) + "\" is no integer"};
  }
  return number;
}

inline std::string text_of(std::string_view literal) {
  if (!literal.starts_with("t:")) throw Malformed{"\"" + std::string(literal) + "\" is no text"};
  return decode_text(literal.substr(2));
}

// Returns the function that stands for a line's callback of type Fn; see calls.cpp.
template <class Fn>
Fn trampoline_of();

class Make {
 public:
  Make(Player& player, const Line& line) : player_(player), line_(line) {
    if (const std::string* const n = find(line.given, "n")) n_ = static_cast<std::size_t>(integer_of(*n));
    has_arrays_ = find(line.given, "n") != nullptr;
  }

  // The callback among the arguments, or nullptr.
  Played* function() const noexcept { return function_; }
  const std::vector<dist_value**>& values() const noexcept { return values_; }

  template <class P>
  P make(std::string_view key) {
    const std::string* const given = find(line_.given, key);
    using T = std::remove_pointer_t<P>;
    if constexpr (Number<P>) {
      if (key == "size_bytes") return static_cast<P>(bytes_ == nullptr ? kTextBytes : bytes_->bytes.size());
      if (key == "capacity") return static_cast<P>(kNumbers);
      for (const std::string_view one : {"axes", "specs", "resolvers"}) {
        if (key.starts_with("num_") && key.substr(4) == one) return static_cast<P>(items(one).size());
      }
      if (key == "num_jobs") return static_cast<P>(num_jobs("jobs"));
      return given == nullptr ? P{} : static_cast<P>(integer_of(*given));
    } else if constexpr (std::is_same_v<P, void*>) {
      return function_;
    } else if constexpr (std::is_same_v<P, const void*>) {
      if (given != nullptr) bytes_ = &keep(tensor_of(*given));
      return bytes_ == nullptr ? nullptr : bytes_->bytes.data();
    } else if constexpr (std::is_function_v<T>) {
      return given == nullptr ? nullptr : function<P>();
    } else if constexpr (std::is_same_v<P, const dist_destination*>) {
      return destinations(key);
    } else if constexpr (std::is_same_v<P, const dist_cluster_job*>) {
      return jobs(key);
    } else if constexpr (Struct<T>) {
      return options<std::remove_const_t<T>>(key);
    } else if constexpr (std::is_same_v<P, dist_work**>) {
      return nullptr;  // recorded collectives block
    } else if constexpr (std::is_same_v<P, dist_tensor*>) {
      return &keep(dist_tensor{});
    } else if constexpr (std::is_same_v<P, const dist_tensor*>) {
      if (key == "out") return tensors("out.shape");
      return tensors(key);
    } else if constexpr (std::is_same_v<P, const char*>) {
      return given == nullptr ? nullptr : keep(text_of(*given)).c_str();
    } else if constexpr (std::is_same_v<P, char*>) {
      return keep(std::string(kTextBytes, '\0')).data();
    } else if constexpr (Object<T>) {
      return given == nullptr ? nullptr : static_cast<P>(player_.object(*given));
    } else if constexpr (std::is_const_v<T>) {
      return given == nullptr ? nullptr : array<std::remove_const_t<T>>(items(key)).data();
    } else {
      auto& out = keep(std::vector<T>(std::max(n_, Number<T> ? kNumbers : 1)));
      if constexpr (std::is_same_v<T, dist_value*>) {
        for (dist_value*& one : out) values_.push_back(&one);
      }
      return out.data();
    }
  }

 private:
  template <class T>
  T& keep(T value) {
    auto kept = std::make_shared<T>(std::move(value));
    kept_.push_back(kept);
    return *kept;
  }

  std::vector<std::string> items(std::string_view key) {
    const std::string* const given = find(line_.given, key);
    return given == nullptr ? std::vector<std::string>() : items_of(*given);
  }

  template <class T>
  T item(const std::string& literal) {
    if constexpr (Number<T>) {
      return static_cast<T>(integer_of(literal));
    } else if constexpr (std::is_same_v<T, const char*>) {
      return keep(text_of(literal)).c_str();
    } else {
      return literal == "-" ? nullptr : static_cast<T>(player_.object(literal));
    }
  }
  // One element more than the items, so that an empty array is not NULL.
  template <class T>
  std::vector<T>& array(const std::vector<std::string>& literals) {
    std::vector<T>& items = keep(std::vector<T>());
    for (const std::string& literal : literals) items.push_back(item<T>(literal));
    items.push_back(T{});
    return items;
  }

  dist_tensor tensor(const std::string& literal) {
    Elements& elements = keep(tensor_of(literal));
    elements.bytes.reserve(1);
    return elements.view();
  }
  dist_tensor* tensors(std::string_view key) {
    const std::string* const given = find(line_.given, key);
    if (given == nullptr) return nullptr;
    if (!has_arrays_) return &keep(tensor(*given));
    std::vector<dist_tensor>& all = keep(std::vector<dist_tensor>());
    for (const std::string& literal : items_of(*given)) all.push_back(tensor(literal));
    all.push_back({});
    return all.data();
  }

  const dist_destination* destinations(std::string_view key) {
    const std::string* const given = find(line_.given, key);
    if (given != nullptr && *given == "-") return nullptr;
    if (key != "destinations") return options<dist_destination>(key);
    std::vector<dist_destination>& all = keep(std::vector<dist_destination>(n_ + 1));
    for (std::size_t i = 0; i < n_; ++i) fill(std::string(key) + std::to_string(i), all[i]);
    return all.data();
  }

  std::size_t num_jobs(const std::string& key) {
    std::size_t n = 0;
    while (find(line_.given, key + std::to_string(n) + ".name") != nullptr) ++n;
    return n;
  }
  const dist_cluster_job* jobs(std::string_view key) {
    const std::string prefix(key);
    std::vector<dist_cluster_job>& all = keep(std::vector<dist_cluster_job>(num_jobs(prefix) + 1));
    for (std::size_t i = 0; i + 1 < all.size(); ++i) fill(prefix + std::to_string(i), all[i]);
    return all.data();
  }

  template <class S>
  S* options(std::string_view key) {
    S& all = keep(S{});
    if constexpr (requires { all.struct_size; }) all.struct_size = sizeof all;
    fill(key, all);
    if constexpr (std::is_same_v<S, dist_slurm_options>) {
      const std::string prefix = std::string(key) + ".jobs";
      all.num_jobs = num_jobs(prefix);
      if (all.num_jobs != 0) all.jobs = jobs(prefix);
    }
    if constexpr (std::is_same_v<S, dist_cross_device_options>) all.accumulate_user_data = function_;
    if constexpr (std::is_same_v<S, dist_variable_options>) all.initial_user_data = function_;
    return &all;
  }

  template <class S>
  void fill(std::string_view prefix, S& all) {
    walk(all, [&]<class F>(const char* name, F& field, std::size_t* n = nullptr) {
      const std::string* const given = find(line_.given, std::string(prefix) + "." + name);
      if constexpr (!std::is_same_v<F, Unsupported>) {
        if (given != nullptr) set(field, n, *given);
      }
    });
  }

  template <class F>
  void set(F& field, std::size_t* n, const std::string& given) {
    using T = std::remove_pointer_t<F>;
    if constexpr (std::is_function_v<T>) {
      field = function<F>();
    } else if constexpr (std::is_same_v<F, dist_tensor*>) {
      field = &keep(tensor(given));
    } else if constexpr (std::is_pointer_v<F> && !Object<T> && !std::is_same_v<F, const char*>) {
      *n = items_of(given).size();
      field = array<std::remove_const_t<T>>(items_of(given)).data();
    } else {
      field = item<F>(given);
    }
  }

  template <class Fn>
  Fn function() {
    function_ = player_.function(line_);
    if constexpr (is_table<Fn>) {  // libdist may read it at any time, so all elements are made now
      for (const auto& element : line_.below) player_.perform_below(*element);
    }
    return trampoline_of<Fn>();
  }

  Player& player_;
  const Line& line_;
  std::size_t n_ = 0;
  bool has_arrays_ = false;
  Played* function_ = nullptr;
  const Elements* bytes_ = nullptr;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<dist_value**> values_;
};

}  // namespace golden::transcript
