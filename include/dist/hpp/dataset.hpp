// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/dataset.hpp: datasets of tensors and of functions, and passes over them (dataset.h). The call that requests
// a batch rethrows an exception of its source, even if another thread made the batch ahead.
//
//     dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
//     options.global_batch_size = 64;
//     options.shuffle = 1;
//     dist::dataset dataset(strategy, {features, labels}, options);
//     for (const dist::value &batch : dataset) strategy.run_values(step, batch);      // each replica gets its part
#ifndef DIST_HPP_DATASET_HPP
#define DIST_HPP_DATASET_HPP

#include "inspect.hpp"
#include "variable.hpp"

namespace dist {

namespace detail {

// The exceptions of a dataset's source, and those of the datasets from which it was made.
class source_failures {
 public:
  std::shared_ptr<failures> add() {
    all_.push_back(std::make_shared<failures>());
    return all_.back();
  }
  void add(const source_failures &others) { all_.insert(all_.end(), others.all_.begin(), others.all_.end()); }
  void check(dist_status status, failures *own = nullptr) const {
    if (status == DIST_OK) return;
    const error report(status);
    if (own != nullptr) own->rethrow_like(report);
    for (const auto &each : all_) each->rethrow_like(report);
    throw report;
  }

 private:
  std::vector<std::shared_ptr<failures>> all_;
};

// A source's function. It lives until its dataset and all passes over it have been destroyed.
template <class Fn>
struct source {
  Fn fn;
  std::shared_ptr<failures> thrown;

  static void release(void *user_data) { delete static_cast<source *>(user_data); }
  // Stores the element that make(fn) returns; an empty value ends the pass.
  template <class Make>
  static dist_status element(void *user_data, dist_value **out, Make &&make) {
    auto &self = *static_cast<source *>(user_data);
    bool over = false;
    const dist_status status = shielded(*self.thrown, -1, [&] {
      value made = make(self.fn);
      over = !made;
      *out = made.release();
    });
    return status == DIST_OK && over ? DIST_OUT_OF_RANGE : status;
  }
};

}  // namespace detail

// One pass over a dataset, used in a range-for loop (for (const dist::value &batch : pass)) or batch by batch.
class dataset_iterator {
 public:
  explicit dataset_iterator(dist_dataset *source, detail::source_failures thrown = {})
      : thrown_(std::move(thrown)) {
    dist_iterator *made = nullptr;
    thrown_.check(dist_iterator_create(source, &made));
    handle_.reset(made);
  }
  // Starts at a position.
  dataset_iterator(dist_dataset *source, const dist_position &position, detail::source_failures thrown = {})
      : thrown_(std::move(thrown)) {
    dist_iterator *made = nullptr;
    thrown_.check(dist_iterator_create_at(source, &position, &made));
    handle_.reset(made);
  }

  // Returns an empty value at the end.
  value next() {
    dist_value *batch = nullptr;
    thrown_.check(dist_iterator_next(handle_.get(), &batch));
    return value::adopt(batch);
  }
  // Gets the next batch; returns false at the end of the pass.
  bool advance(value &batch) {
    batch = next();
    return static_cast<bool>(batch);
  }
  // Like next(), including a last step that lacks batches.
  value next_optional();
  // The position of the next batch, for dataset::iterate_from().
  dist_position position() const {
    dist_position where = DIST_POSITION_INIT;
    check(dist_iterator_position(handle_.get(), &where));
    return where;
  }
  [[nodiscard]] dist_iterator *get() const noexcept { return handle_.get(); }

 private:
  struct destroy {
    void operator()(dist_iterator *handle) const noexcept { dist_iterator_destroy(handle); }
  };
  std::unique_ptr<dist_iterator, destroy> handle_;
  detail::source_failures thrown_;
};

// A dataset. Each range-for loop over it (for (const dist::value &batch : dataset)) is one pass.
class dataset {
 public:
  // Rows in memory, which are copied.
  dataset(const strategy_ref &owner, const const_tensors &rows, const dist_dataset_options &options) {
    dist_dataset *made = nullptr;
    check(dist_dataset_create_from_tensors(owner.get(), rows.in(), rows.size(), &options, &made));
    handle_.reset(made);
  }
  // fn(int64_t index) returns element `index` of a pass; an empty value ends the pass.
  template <class Fn>
  static dataset from_callback(const strategy_ref &owner, Fn &&fn, const dist_dataset_options &options) {
    using source = detail::source<std::decay_t<Fn>>;
    return of_source(std::forward<Fn>(fn), [&](source *kept, dist_dataset **out) {
      return dist_dataset_create_from_callback(
          owner.get(),
          [](dist_strategy *, int64_t index, dist_value **element, void *user_data) {
            return source::element(user_data, element, [&](auto &make) { return make(index); });
          },
          kept, &source::release, &options, out);
    });
  }
  // fn(std::size_t file, const char *name, int64_t index) returns element `index` of a file; an empty value ends the
  // file.
  template <class Fn>
  static dataset from_files(const strategy_ref &owner, const std::vector<const char *> &names, Fn &&fn,
                            const dist_dataset_options &options);
  // fn(const dist_input_context &) returns the dataset of one input pipeline.
  template <class Fn>
  static dataset from_function(const strategy_ref &owner, Fn &&fn, const dist_dataset_options &options) {
    using plain = std::remove_reference_t<Fn>;
    struct call : detail::callback<plain> {
      detail::source_failures inner{};
      using detail::callback<plain>::callback;
    } each(fn);
    dataset whole;
    dist_dataset *made = nullptr;
    each.thrown.check(dist_dataset_create_from_function(
        owner.get(),
        [](dist_strategy *, const dist_input_context *context, dist_dataset **out, void *user_data) {
          auto &self = *static_cast<call *>(user_data);
          return detail::shielded(self.thrown, -1, [&] {
            dataset part = (*self.fn)(*context);
            self.inner.add(part.thrown_);
            *out = part.handle_.release();
          });
        },
        &each, &options, &made));
    whole.handle_.reset(made);
    whole.thrown_ = std::move(each.inner);
    return whole;
  }

  // Starts the next pass of this dataset.
  dataset_iterator iterate() const { return dataset_iterator(handle_.get(), thrown_); }
  // Starts a pass at a position.
  dataset_iterator iterate_from(const dist_position &position) const {
    return dataset_iterator(handle_.get(), position, thrown_);
  }
  // Describes the batches, with a text for each tensor of each replica.
  value element_spec() const;
  // For each batch of a pass: state = fn(state, batch).
  template <class Fn>
  value reduce(const value &initial, Fn &&fn) const;
  // Throws dist::error with DIST_DATA_LOSS if a worker misses an example or an example occurs twice.
  void check_shards(int64_t limit = 0) const;
  // A description for human readers of how the dataset is read.
  std::string explain() const;
  [[nodiscard]] dist_dataset *get() const noexcept { return handle_.get(); }

  class iterator {
   public:
    iterator() noexcept = default;
    explicit iterator(dist_dataset *source) : iterator(dataset_iterator(source)) {}
    explicit iterator(dataset_iterator pass) : pass_(std::make_shared<dataset_iterator>(std::move(pass))) {
      ++*this;
    }
    const value &operator*() const noexcept { return batch_; }
    iterator &operator++() {
      if (pass_->advance(batch_)) return *this;
      batch_ = value();
      pass_.reset();
      return *this;
    }
    bool operator!=(const iterator &other) const noexcept { return pass_ != other.pass_; }
    bool operator==(const iterator &other) const noexcept { return pass_ == other.pass_; }

   private:
    std::shared_ptr<dataset_iterator> pass_;
    value batch_;
  };
  iterator begin() const { return iterator(iterate()); }
  iterator end() const noexcept { return {}; }

 private:
  dataset() noexcept = default;
  template <class Fn, class Create>
  static dataset of_source(Fn &&fn, Create &&create) {
    using source = detail::source<std::decay_t<Fn>>;
    dataset made;
    std::unique_ptr<source> kept(new source{std::forward<Fn>(fn), made.thrown_.add()});
    dist_dataset *handle = nullptr;
    made.thrown_.check(create(kept.get(), &handle));
    (void)kept.release();  // owned by the dataset now
    made.handle_.reset(handle);
    return made;
  }

  struct destroy {
    void operator()(dist_dataset *handle) const noexcept { dist_dataset_destroy(handle); }
  };
  std::unique_ptr<dist_dataset, destroy> handle_;
  detail::source_failures thrown_;
};

// One replica's share of a global batch.
inline int64_t per_replica_batch_size(const dist_input_context &context, int64_t global_batch_size) {
  int64_t size = 0;
  check(dist_input_context_per_replica_batch_size(&context, global_batch_size, &size));
  return size;
}

inline value dataset_iterator::next_optional() {
  dist_value *batch = nullptr;
  thrown_.check(dist_iterator_next_optional(handle_.get(), &batch));
  return value::adopt(batch);
}

template <class Fn>
dataset dataset::from_files(const strategy_ref &owner, const std::vector<const char *> &names, Fn &&fn,
                            const dist_dataset_options &options) {
  using source = detail::source<std::decay_t<Fn>>;
  return of_source(std::forward<Fn>(fn), [&](source *kept, dist_dataset **out) {
    return dist_dataset_create_from_files(
        owner.get(), names.data(), names.size(),
        [](dist_strategy *, std::size_t file, const char *name, int64_t index, dist_value **element,
           void *user_data) {
          return source::element(user_data, element, [&](auto &make) { return make(file, name, index); });
        },
        kept, &source::release, &options, out);
  });
}

inline value dataset::element_spec() const {
  dist_value *spec = nullptr;
  thrown_.check(dist_dataset_element_spec(handle_.get(), &spec));
  return value::adopt(spec);
}

template <class Fn>
value dataset::reduce(const value &initial, Fn &&fn) const {
  using call = detail::callback<std::remove_reference_t<Fn>>;
  call each(fn);
  dist_value *last = nullptr;
  thrown_.check(
      dist_dataset_reduce(
          handle_.get(), initial.get(),
          [](dist_dataset *, dist_value *state, dist_value *batch, dist_value **out, void *user_data) {
            auto &self = call::of(user_data);
            const detail::borrowed before(state), given(batch);
            return detail::shielded(self.thrown, -1,
                                    [&] { *out = value((*self.fn)(*before, *given)).release(); });
          },
          &each, &last),
      &each.thrown);
  return value::adopt(last);
}

inline void dataset::check_shards(int64_t limit) const {
  thrown_.check(dist_dataset_check_shards(handle_.get(), limit));
}

inline std::string dataset::explain() const {
  return detail::text_of(
      [&](dist_text_fn fn, void *user_data) { return dist_dataset_explain(handle_.get(), fn, user_data); });
}
// The sizes of the pieces into which one of several workers splits its batches.
inline std::vector<int64_t> batch_sizes_for_worker(int64_t global_batch_size, int32_t num_workers,
                                                   int32_t num_replicas_per_worker, int32_t worker) {
  const int64_t pieces = int64_t{num_workers} * num_replicas_per_worker;
  std::vector<int64_t> sizes(pieces > 0 ? static_cast<std::size_t>(pieces) : 0);
  check(dist_batch_sizes_for_worker(global_batch_size, num_workers, num_replicas_per_worker, worker,
                                    sizes.data(), sizes.size()));
  return sizes;
}

}  // namespace dist

#endif  // DIST_HPP_DATASET_HPP
