// SPDX-License-Identifier: Apache-2.0
//
// dist/dist.hpp: libdist for C++17, header only, over the C API alone: objects that end themselves, exceptions,
// lambdas. What each call does is said in dist/dist.h.
//
//     dist::strategy strategy(2);
//     strategy.run([](dist::replica replica) {
//       std::vector<float> gradient{1, 2, 3};
//       replica.all_reduce(dist::reduce_op::sum, gradient);
//     });
//
// An exception that leaves a replica's function ends the run for all and arrives, as itself, at run()'s caller.
#ifndef DIST_DIST_HPP
#define DIST_DIST_HPP

#include <array>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include "dist.h"

namespace dist {

// ---- Errors ----------------------------------------------------------------------------------------------

// A failing call's status, text and fields.
class error : public std::runtime_error {
 public:
  // What this thread's latest failing call said.
  explicit error(dist_status code) : std::runtime_error(dist_last_error()), code_(code) {
    dist_error_info info = DIST_ERROR_INFO_INIT;
    if (dist_last_error_info(&info) != DIST_OK) return;
    replica_ = info.replica;
    collective_ = info.collective;
    sequence_ = info.sequence;
    tag_ = info.tag;
    expected_ = info.expected;
    received_ = info.received;
    hint_ = info.hint;
  }
  error(dist_status code, const std::string &message) : std::runtime_error(message), code_(code) {}

  dist_status code() const noexcept { return code_; }
  int32_t replica() const noexcept { return replica_; }        // the culprit; -1: none
  int32_t collective() const noexcept { return collective_; }  // DIST_COLLECTIVE_...
  int64_t sequence() const noexcept { return sequence_; }
  const std::string &tag() const noexcept { return tag_; }
  const std::string &expected() const noexcept { return expected_; }
  const std::string &received() const noexcept { return received_; }
  const std::string &hint() const noexcept { return hint_; }

 private:
  dist_status code_;
  int32_t replica_ = -1;
  int32_t collective_ = DIST_COLLECTIVE_NONE;
  int64_t sequence_ = 0;
  std::string tag_, expected_, received_, hint_;
};

inline void check(dist_status status) {
  if (status != DIST_OK) throw error(status);
}

// ---- Tensors ---------------------------------------------------------------------------------------------

enum class reduce_op : int32_t {
  sum = DIST_REDUCE_SUM,
  mean = DIST_REDUCE_MEAN,
  min = DIST_REDUCE_MIN,
  max = DIST_REDUCE_MAX,
  prod = DIST_REDUCE_PROD
};

// C++ types that are a dtype: numbers and bool, not characters.
template <class T>
inline constexpr bool is_element = std::is_same_v<T, bool> || std::is_same_v<T, float> ||
                                   std::is_same_v<T, double> ||
                                   (std::is_integral_v<T> && sizeof(T) <= 8 && !std::is_same_v<T, char> &&
                                    !std::is_same_v<T, wchar_t> && !std::is_same_v<T, char16_t> &&
                                    !std::is_same_v<T, char32_t>);

template <class T>
constexpr dist_dtype dtype_of() {
  static_assert(is_element<T>, "libdist has no dtype for this element type; make a tensor of a dist_tensor");
  if constexpr (std::is_same_v<T, bool>)
    return DIST_BOOL;
  else if constexpr (std::is_same_v<T, float>)
    return DIST_F32;
  else if constexpr (std::is_same_v<T, double>)
    return DIST_F64;
  else {
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1)
      return is_signed ? DIST_I8 : DIST_U8;
    else if constexpr (sizeof(T) == 2)
      return is_signed ? DIST_I16 : DIST_U16;
    else if constexpr (sizeof(T) == 4)
      return is_signed ? DIST_I32 : DIST_U32;
    else
      return is_signed ? DIST_I64 : DIST_U64;
  }
}

// A view with a shape of its own, so that it can be made in one expression.
class tensor {
 public:
  template <class T, class = std::enable_if_t<is_element<std::remove_const_t<T>>>>
  tensor(T *data, std::initializer_list<int64_t> shape)
      : tensor(data, dtype_of<std::remove_const_t<T>>(), shape.begin(), shape.size()) {}
  template <class T, class = std::enable_if_t<is_element<std::remove_const_t<T>>>>
  tensor(T *data, std::size_t elements) : tensor(data, {static_cast<int64_t>(elements)}) {}
  // A vector, array or span: one dimension.
  template <class Container, class = decltype(std::declval<Container &>().data())>
  tensor(Container &elements)  // NOLINT: meant to be implicit
      : tensor(elements.data(), elements.size()) {}
  // A view from the library: its shape is copied, so that it may outlive the object it came from, data excepted.
  explicit tensor(const dist_tensor &view)
      : tensor(view.data, view.dtype, view.shape, static_cast<std::size_t>(view.ndim)) {
    if (view.strides == nullptr) return;
    for (int32_t i = 0; i < view.ndim; ++i) strides_[static_cast<std::size_t>(i)] = view.strides[i];
    has_strides_ = true;
  }

  dist_tensor get() const noexcept {
    return {data_, dtype_, ndim_, ndim_ == 0 ? nullptr : shape_.data(),
            has_strides_ ? strides_.data() : nullptr};
  }
  dist_dtype dtype() const noexcept { return dtype_; }
  int32_t ndim() const noexcept { return ndim_; }
  int64_t size(int32_t dim) const { return shape_.at(static_cast<std::size_t>(dim)); }
  int64_t elements() const noexcept {
    int64_t product = 1;
    for (int32_t i = 0; i < ndim_; ++i) product *= shape_[static_cast<std::size_t>(i)];
    return product;
  }
  // The data as T; throws where the dtype is another.
  template <class T>
  T *data() const {
    if (dtype_ != dtype_of<std::remove_const_t<T>>())
      throw error(DIST_INVALID_ARGUMENT, "the tensor has another dtype");
    return static_cast<T *>(data_);
  }

 private:
  tensor(const void *data, dist_dtype dtype, const int64_t *shape, std::size_t ndim)
      : data_(const_cast<void *>(data)), dtype_(dtype), ndim_(static_cast<int32_t>(ndim)) {
    if (ndim > shape_.size())
      throw error(DIST_INVALID_ARGUMENT, "a tensor has at most DIST_MAX_NDIM dimensions");
    for (std::size_t i = 0; i < ndim; ++i) shape_[i] = shape[i];
  }

  void *data_;
  dist_dtype dtype_;
  int32_t ndim_;
  bool has_strides_ = false;
  std::array<int64_t, DIST_MAX_NDIM> shape_{};
  std::array<int64_t, DIST_MAX_NDIM> strides_{};
};

// ---- Replicas --------------------------------------------------------------------------------------------

// Name and deadline of one collective.
struct collective_options {
  const char *tag = nullptr;
  int64_t timeout_ns = 0;
};

// One replica, inside its function. A handle to copy at will; it does not outlive the function.
class replica {
 public:
  explicit replica(dist_replica *handle) noexcept : handle_(handle) {}

  int32_t id() const noexcept { return dist_replica_id(handle_); }
  int32_t num_replicas() const noexcept { return dist_replica_num_replicas(handle_); }
  dist_replica *get() const noexcept { return handle_; }

  // In place.
  void all_reduce(reduce_op op, const tensor &data, const collective_options &options = {}) const {
    all_reduce(op, data, data, options);
  }
  void all_reduce(reduce_op op, const tensor &in, const tensor &out,
                  const collective_options &options = {}) const {
    const dist_tensor from = in.get();
    dist_tensor to = out.get();
    const auto given = c_options(options);
    check(dist_all_reduce(handle_, static_cast<int32_t>(op), &from, &to, 1, &given));
  }
  // A list, in place: one collective.
  void all_reduce(reduce_op op, const std::vector<tensor> &list,
                  const collective_options &options = {}) const {
    std::vector<dist_tensor> views;
    views.reserve(list.size());
    for (const tensor &each : list) views.push_back(each.get());
    const auto given = c_options(options);
    check(
        dist_all_reduce(handle_, static_cast<int32_t>(op), views.data(), views.data(), views.size(), &given));
  }
  void broadcast(int32_t root, const tensor &data, const collective_options &options = {}) const {
    dist_tensor view = data.get();
    const auto given = c_options(options);
    check(dist_broadcast(handle_, root, &view, &view, 1, &given));
  }
  void barrier(const collective_options &options = {}) const {
    const auto given = c_options(options);
    check(dist_barrier(handle_, &given));
  }
  // body(begin, end), on this replica's share of the cores. It must not throw.
  template <class Body>
  void parallel_for(int64_t begin, int64_t end, int64_t grain, Body &&body) const {
    using Plain = std::remove_reference_t<Body>;
    static_assert(std::is_nothrow_invocable_v<Plain &, int64_t, int64_t>,
                  "the body runs on library threads: declare it noexcept");
    check(dist_parallel_for(
        handle_, begin, end, grain,
        [](int64_t first, int64_t last, void *user_data) { (*static_cast<Plain *>(user_data))(first, last); },
        const_cast<void *>(static_cast<const void *>(std::addressof(body)))));
  }

 private:
  static dist_collective_options c_options(const collective_options &options) noexcept {
    dist_collective_options given = DIST_COLLECTIVE_OPTIONS_INIT;
    given.tag = options.tag;
    given.timeout_ns = options.timeout_ns;
    return given;
  }

  dist_replica *handle_;
};

// ---- Strategies ------------------------------------------------------------------------------------------

class strategy {
 public:
  // A mirrored strategy; 0: as many replicas as there are usable CPUs.
  explicit strategy(int32_t num_replicas = 0) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = num_replicas;
    check(dist_strategy_create(&options, &handle_));
  }
  explicit strategy(const dist_strategy_options &options) { check(dist_strategy_create(&options, &handle_)); }
  ~strategy() { dist_strategy_destroy(handle_); }
  strategy(strategy &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  strategy &operator=(strategy &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  strategy(const strategy &) = delete;
  strategy &operator=(const strategy &) = delete;

  int32_t num_replicas() const noexcept { return dist_strategy_num_replicas(handle_); }
  dist_strategy *get() const noexcept { return handle_; }
  void cancel() const { check(dist_strategy_cancel(handle_)); }

  // body(replica), once on every replica, at the same time. Throws what the failing replica threw, or error.
  template <class Body>
  void run(Body &&body) const {
    Run<std::remove_reference_t<Body>> all{std::addressof(body), {}};
    all.thrown.resize(static_cast<std::size_t>(num_replicas()));
    const dist_status status = dist_run(handle_, &decltype(all)::call, &all);
    if (status == DIST_OK) return;
    const error failure(status);
    const auto culprit = static_cast<std::size_t>(failure.replica());
    if (failure.replica() >= 0 && culprit < all.thrown.size() && all.thrown[culprit]) {
      std::rethrow_exception(all.thrown[culprit]);
    }
    throw failure;
  }

 private:
  template <class Body>
  struct Run {
    Body *body;
    std::vector<std::exception_ptr> thrown;  // each replica writes its own

    static dist_status call(dist_replica *handle, void *user_data) {
      auto &self = *static_cast<Run *>(user_data);
      const auto id = static_cast<std::size_t>(dist_replica_id(handle));
      try {
        (*self.body)(replica(handle));
        return DIST_OK;
      } catch (const error &failure) {
        self.thrown[id] = std::current_exception();
        // A peer's failure stays ABORTED, and its report stays as it is.
        const bool reported = std::string_view(dist_last_error()) == failure.what();
        return reported ? failure.code() : dist_fail(failure.code(), failure.what());
#if defined(__GLIBCXX__)
      } catch (const abi::__forced_unwind &) {
        throw;
#endif
      } catch (const std::exception &failure) {
        self.thrown[id] = std::current_exception();
        return dist_fail(DIST_UNKNOWN, failure.what());
      } catch (...) {
        self.thrown[id] = std::current_exception();
        return dist_fail(DIST_UNKNOWN, "the replica's function threw something that is no std::exception");
      }
    }
  };

  dist_strategy *handle_ = nullptr;
};

// ---- Values, variables, datasets -------------------------------------------------------------------------

// A counted value.
class value {
 public:
  value() noexcept = default;
  // Takes over a reference.
  static value adopt(dist_value *handle) noexcept {
    value owned;
    owned.handle_ = handle;
    return owned;
  }
  // A copy of a tensor.
  value(const strategy &owner, const tensor &data) {
    const dist_tensor view = data.get();
    check(dist_value_create_tensor(owner.get(), &view, &handle_));
  }
  // One component for each replica.
  static value per_replica(const strategy &owner, const std::vector<value> &items) {
    return compose(owner, items, dist_value_create_per_replica);
  }
  static value list(const strategy &owner, const std::vector<value> &items) {
    return compose(owner, items, dist_value_create_list);
  }
  ~value() { dist_value_release(handle_); }
  value(const value &other) noexcept : handle_(dist_value_retain(other.handle_)) {}
  value(value &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  value &operator=(value other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  int32_t kind() const noexcept { return dist_value_kind(handle_); }
  std::size_t size() const noexcept { return dist_value_size(handle_); }
  value operator[](std::size_t index) const {
    dist_value *item = dist_value_item(handle_, index);
    if (item == nullptr) throw error(DIST_OUT_OF_RANGE, "the value has no item " + std::to_string(index));
    return adopt(dist_value_retain(item));
  }
  value operator[](const char *key) const {
    dist_value *item = dist_value_get(handle_, key);
    if (item == nullptr) throw error(DIST_NOT_FOUND, std::string("the value has no item ") + key);
    return adopt(dist_value_retain(item));
  }
  dist::tensor tensor() const {
    dist_tensor view;
    check(dist_value_tensor(handle_, &view));
    return dist::tensor(view);
  }
  dist_value *get() const noexcept { return handle_; }

 private:
  template <class Create>
  static value compose(const strategy &owner, const std::vector<value> &items, Create create) {
    std::vector<dist_value *> handles;
    handles.reserve(items.size());
    for (const value &item : items) handles.push_back(item.get());
    dist_value *made = nullptr;
    check(create(owner.get(), handles.data(), handles.size(), &made));
    return adopt(made);
  }

  dist_value *handle_ = nullptr;
};

inline value reduce(const strategy &owner, reduce_op op, const value &given) {
  dist_value *reduced = nullptr;
  check(dist_reduce(owner.get(), static_cast<int32_t>(op), given.get(), nullptr, 0, &reduced));
  return value::adopt(reduced);
}

class variable {
 public:
  variable(const strategy &owner, const tensor &initial, const char *name = nullptr,
           int32_t aggregation = DIST_AGGREGATION_NONE) {
    dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
    options.name = name;
    options.aggregation = aggregation;
    const dist_tensor view = initial.get();
    dist_variable *made = nullptr;
    check(dist_variable_create(owner.get(), &view, &options, &made));
    handle_.reset(made);
  }
  tensor component(int32_t replica_id) const {
    dist_tensor view;
    check(dist_variable_component(handle_.get(), replica_id, &view));
    return tensor(view);
  }
  dist_variable *get() const noexcept { return handle_.get(); }

 private:
  struct Destroy {
    void operator()(dist_variable *handle) const noexcept { dist_variable_destroy(handle); }
  };
  std::unique_ptr<dist_variable, Destroy> handle_;
};

// A dataset in memory; each pass is a range: for (const dist::value& batch : dataset) ...
class dataset {
 public:
  dataset(const strategy &owner, const std::vector<tensor> &rows, const dist_dataset_options &options) {
    std::vector<dist_tensor> views;
    views.reserve(rows.size());
    for (const tensor &each : rows) views.push_back(each.get());
    dist_dataset *made = nullptr;
    check(dist_dataset_create_from_tensors(owner.get(), views.data(), views.size(), &options, &made));
    handle_.reset(made);
  }

  class iterator {
   public:
    iterator() noexcept = default;
    explicit iterator(dist_dataset *source) {
      dist_iterator *made = nullptr;
      check(dist_iterator_create(source, &made));
      pass_.reset(made, dist_iterator_destroy);
      ++*this;
    }
    const value &operator*() const noexcept { return batch_; }
    iterator &operator++() {
      dist_value *next = nullptr;
      const dist_status status = dist_iterator_next(pass_.get(), &next);
      batch_ = value::adopt(next);
      if (status == DIST_OUT_OF_RANGE)
        pass_.reset();
      else
        check(status);
      return *this;
    }
    bool operator!=(const iterator &other) const noexcept { return pass_ != other.pass_; }

   private:
    std::shared_ptr<dist_iterator> pass_;
    value batch_;
  };
  iterator begin() const { return iterator(handle_.get()); }
  iterator end() const noexcept { return {}; }

 private:
  struct Destroy {
    void operator()(dist_dataset *handle) const noexcept { dist_dataset_destroy(handle); }
  };
  std::unique_ptr<dist_dataset, Destroy> handle_;
};

}  // namespace dist
#endif  // DIST_DIST_HPP
