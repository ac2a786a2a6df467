// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/version.hpp: version.h for C++: data that all replicas read, replaced while they run.
//
//     dist::versions<model> models;
//     models.publish(load("v1"));
//
//     strategy.submit([&](dist::replica here) { answer(*here.version(models)); });    // the same one until it ends
//
//     const int64_t number = models.publish(load("v2"));
//     models.await(number);                         // v1 has been destroyed
#ifndef DIST_HPP_VERSION_HPP
#define DIST_HPP_VERSION_HPP

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "replica.hpp"

namespace dist {

// The version that a run sees; valid until the run ends.
template <class Content>
struct seen_version {
  Content *content;
  int64_t number;

  Content &operator*() const noexcept { return *content; }
  Content *operator->() const noexcept { return content; }
};

// A series of versions, each a Content that is destroyed when no run sees it any more: by its destructor or by its
// shared_ptr's deleter, which must not throw. If replicas modify a version, they must synchronize themselves; Content
// may be a const type.
template <class Content>
class versions {
 public:
  versions() { check(dist_versions_create(nullptr, &handle_)); }
  explicit versions(const dist_allocator &allocator) { check(dist_versions_create(&allocator, &handle_)); }
  // The latest version is destroyed when no run sees it any more.
  ~versions() { dist_versions_destroy(handle_); }
  versions(versions &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  versions &operator=(versions &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  versions(const versions &) = delete;
  versions &operator=(const versions &) = delete;

  // Makes it the latest version and returns its number, starting at 1. Runs in progress continue with the versions that
  // they see.
  int64_t publish(std::shared_ptr<Content> content) {
    auto held = std::make_unique<std::shared_ptr<Content>>(std::move(content));
    void *const address = const_cast<std::remove_const_t<Content> *>(held->get());
    int64_t number = 0;
    check(dist_versions_publish(
        handle_, address,
        [](void *, void *user_data) { delete static_cast<std::shared_ptr<Content> *>(user_data); },
        held.get(), &number));
    (void)held.release();
    return number;
  }
  int64_t publish(std::remove_const_t<Content> &&content) {
    return publish(std::make_shared<Content>(std::move(content)));
  }
  // The number of the latest version; 0 if there is none.
  int64_t latest() const noexcept { return dist_versions_latest(handle_); }
  // Waits until all versions before `number` have been destroyed.
  void await(int64_t number, int64_t timeout_ns = DIST_NO_TIMEOUT) const {
    check(dist_versions_await(handle_, number, timeout_ns));
  }
  [[nodiscard]] dist_versions *get() const noexcept { return handle_; }

 private:
  dist_versions *handle_ = nullptr;
};

template <class Content>
seen_version<Content> replica::version(const versions<Content> &of) const {
  void *content = nullptr;
  seen_version<Content> seen{nullptr, 0};
  dist::check(dist_replica_version(handle_, of.get(), &content, &seen.number));
  seen.content = static_cast<Content *>(content);
  return seen;
}

}  // namespace dist

#endif  // DIST_HPP_VERSION_HPP
