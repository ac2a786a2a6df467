// SPDX-License-Identifier: Apache-2.0
// The resolver for pods of a StatefulSet or an Indexed Job, whose names are NAME-0, NAME-1, and so on. It
// reads the environment on creation and never contacts the API server.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "core/base/text.hpp"
#include "core/cluster/integers.hpp"
#include "core/cluster/resolvers.hpp"

namespace dist {
namespace {

constexpr int32_t kDefaultPort = 8888;
constexpr int32_t kLastPort = 65535;
constexpr std::size_t kMaxLabel = 63;  // bytes between two dots, a DNS limit
constexpr std::size_t kMaxName = 253;  // of a whole name
constexpr const char* kSource = "Kubernetes pod names";

bool is_label(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kMaxLabel && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
         });
}

// Checks a name that consists of labels separated by dots.
Status check_dns_name(const char* text, const char* what) noexcept {
  const std::size_t size = ::strnlen(text, kMaxName + 1);
  std::string_view left(text, size);
  bool good = size <= kMaxName;
  while (good) {
    const std::size_t dot = left.find('.');
    good = is_label(left.substr(0, dot));
    if (dot == std::string_view::npos) break;
    left.remove_prefix(dot + 1);
  }
  if (good) return kOk;
  return invalid_argument(
      "%s is \"%s\", but must be a DNS name: letters, digits and dashes, with at most %zu bytes between dots "
      "and %zu in all",
      what, Shown(text).c_str(), kMaxLabel, kMaxName);
}

// Returns the given text, otherwise the variable. NULL if that is not set or is empty.
const char* given_or(const char* given, const char* name) noexcept {
  if (given != nullptr) return given;
  const char* const text = environment_text(name);
  return text == nullptr || *text == '\0' ? nullptr : text;
}

class Pods {
 public:
  explicit Pods(Memory& memory) : memory_(memory) {}

  Status read(const KubernetesOptions& options, Ref<ClusterSpec>* out) {
    const char* const host = given_or(options.host_name, "HOSTNAME");
    if (host == nullptr) {
      return failed_precondition("HOSTNAME is not set in the environment. Set `host_name` as an option.");
    }
    DIST_TRY(read_host(host));
    DIST_TRY(read_count(options));
    DIST_TRY(read_index(options));
    return name_all(options, out);
  }
  int32_t own_index() const noexcept { return index_; }

 private:
  // "trainer-2", without a domain. Kubernetes writes no leading zeros.
  Status read_host(const char* host) noexcept {
    DIST_TRY(check_dns_name(host, "the host name"));
    const std::string_view label = std::string_view(host).substr(0, std::strcspn(host, "."));
    const std::size_t dash = label.rfind('-');
    const std::string_view digits = dash == std::string_view::npos ? "" : label.substr(dash + 1);
    if (dash == 0 || digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos ||
        (digits.size() > 1 && digits.front() == '0')) {
      return invalid_argument(
          "the host name is \"%s\", but must end with a dash and the pod's number without leading zeros, as "
          "in a StatefulSet or an Indexed Job",
          Shown(host).c_str());
    }
    base_ = label.substr(0, dash);
    return int_of(digits, "the number at the end of the host name", &ordinal_);
  }

  Status read_count(const KubernetesOptions& options) noexcept {
    count_ = options.num_workers;
    if (count_ == 0) {
      const char* const text = given_or(nullptr, "WORLD_SIZE");
      if (text == nullptr) {
        return failed_precondition(
            "WORLD_SIZE is not set in the environment. Set `num_workers` as an option.");
      }
      DIST_TRY(int_of(text, "WORLD_SIZE", &count_));
    }
    if (count_ >= 1 && count_ <= DIST_MAX_CLUSTER_TASKS) return kOk;
    return invalid_argument("the number of workers is %d, but must be 1 to %d", count_,
                            DIST_MAX_CLUSTER_TASKS);
  }

  Status read_index(const KubernetesOptions& options) noexcept {
    first_ = options.first_index;
    if (first_ < 0) return invalid_argument("`first_index` is %d, but must be at least 0", first_);
    int32_t number = options.index;
    if (number == DIST_TASK_UNSET) {
      number = ordinal_;
      if (const char* const text = given_or(nullptr, "JOB_COMPLETION_INDEX"); text != nullptr) {
        DIST_TRY(int_of(text, "JOB_COMPLETION_INDEX", &number));
      }
    }
    const int64_t index = int64_t{number} - first_;
    if (index < 0 || index >= count_) {
      return invalid_argument(
          "the index of this pod is %d, but the job has %s, and the index of the first pod is %d", number,
          CountText(count_, "worker").text, first_);
    }
    index_ = static_cast<int32_t>(index);
    return kOk;
  }

  // ".SERVICE.NAMESPACE.svc.DOMAIN:port"
  Status write_rest(const KubernetesOptions& options, std::pmr::string* rest) {
    if (options.service == nullptr && (options.name_space != nullptr || options.domain != nullptr)) {
      return invalid_argument(
          "%s is set, but service is not. The addresses of pods contain it only after a service. Set service "
          "too.",
          options.name_space != nullptr ? "name_space" : "domain");
    }
    if (options.service != nullptr) {
      DIST_TRY(check_dns_name(options.service, "service"));
      rest->append(".").append(options.service);
      if (const char* const space = given_or(options.name_space, "POD_NAMESPACE"); space != nullptr) {
        DIST_TRY(check_dns_name(space, "the namespace"));
        rest->append(".").append(space).append(".svc");
        if (options.domain != nullptr) {
          DIST_TRY(check_dns_name(options.domain, "domain"));
          rest->append(".").append(options.domain);
        }
      } else if (options.domain != nullptr) {
        return invalid_argument(
            "domain is set, but the namespace is not known. Set `name_space` or POD_NAMESPACE.");
      }
    }
    const int32_t port = options.port == 0 ? kDefaultPort : options.port;
    if (port < 1 || port > kLastPort)
      return invalid_argument("`port` is %d, but must be 1 to %d", port, kLastPort);
    char digits[16];
    std::snprintf(digits, sizeof digits, ":%d", port);
    rest->append(digits);
    return kOk;
  }

  Status name_all(const KubernetesOptions& options, Ref<ClusterSpec>* out) {
    std::pmr::string rest(&memory_);
    DIST_TRY(write_rest(options, &rest));
    std::pmr::vector<std::pmr::string> addresses(&memory_);
    addresses.reserve(static_cast<std::size_t>(count_));
    SpecBuilder builder(memory_);
    DIST_TRY(builder.begin_job("worker"));
    for (int32_t i = 0; i < count_; ++i) {
      char digits[24];
      const int64_t ordinal = int64_t{first_} + i;
      std::snprintf(digits, sizeof digits, "-%" PRId64, ordinal);
      std::pmr::string& address = addresses.emplace_back(base_);
      address.append(digits).append(rest);
      DIST_TRY(builder.add_task(i, address));
    }
    return builder.finish(out);
  }

  Memory& memory_;
  std::string_view base_;  // "trainer"
  int32_t ordinal_ = 0;
  int32_t count_ = 0;
  int32_t first_ = 0;
  int32_t index_ = 0;
};

class KubernetesResolver final : public ClusterResolver {
 public:
  KubernetesResolver(Memory& memory, const ResolverOptions& options) : ClusterResolver(memory, options) {}
  Status read(const KubernetesOptions& kubernetes) {
    Pods pods(memory());
    DIST_TRY(pods.read(kubernetes, &spec_));
    index_ = pods.own_index();
    return kOk;
  }

  Status spec(Ref<ClusterSpec>* out) const override {
    *out = spec_;
    return kOk;
  }

 protected:
  const char* kind() const noexcept override { return "Kubernetes"; }
  const char* spec_source() const noexcept override { return kSource; }
  Status find_task_type(FoundText* out) const override { return out->set("worker", kSource, "task_type"); }
  Status find_task_id(FoundNumber* out) const override { return *out = {index_, kSource}, kOk; }
  Status find_rpc_layer(FoundText* out) const override { return out->set("grpc", "default", "rpc_layer"); }
  Status find_address(const AskedTask& asked, FoundText* out) const override {
    return own_or_asked_address(asked, out);
  }

 private:
  Ref<ClusterSpec> spec_;
  int32_t index_ = 0;
};

}  // namespace

Status create_kubernetes_resolver(Memory& memory, const KubernetesOptions& kubernetes,
                                  const ResolverOptions& options, Ref<ClusterResolver>* out) {
  Ref<KubernetesResolver> made = make_counted<KubernetesResolver>(memory, options);
  DIST_TRY(made->read(kubernetes));
  *out = Ref<ClusterResolver>::adopt(made.take());
  return kOk;
}

}  // namespace dist
