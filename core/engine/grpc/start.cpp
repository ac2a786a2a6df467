// SPDX-License-Identifier: Apache-2.0
#include "core/engine/grpc/start.hpp"

#include <grpc/support/log.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "core/base/os/thread.hpp"
#include "core/base/text.hpp"
#include "core/engine/grpc/endpoint.hpp"
#include "core/engine/grpc/grpc_config.hpp"

namespace dist::grpc_link {
namespace {

void say_nothing(gpr_log_func_args*) {}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

// gRPC's threads have the signals of who makes the first of them: not the host's thread.
struct Starting {
  Endpoint& endpoint;
  std::string why;
};

void* start_main(void* given) {
  block_async_signals();
  auto& starting = *static_cast<Starting*>(given);
  try {
    starting.why = starting.endpoint.start();
  } catch (const std::exception& error) {
    starting.why = error.what();
  }
  return nullptr;
}

}  // namespace

void silence() noexcept { gpr_set_log_function(say_nothing); }

dist_status start_endpoint(const GrpcModuleConfig& config, std::unique_ptr<Carriers> (*make)(Memory& memory),
                           Transport** out, void** handle, char* why, std::size_t size) noexcept {
  try {
    Config own;
    for (const char* const each : config.addresses) own.addresses.emplace_back(each);
    own.me = config.me;
    own.bind_address = config.bind_address;
    own.digest = text_of(config.digest);
    own.secret = text_of(config.secret);
    own.ca = text_of(config.ca);
    own.certificate = text_of(config.certificate);
    own.key = text_of(config.key);
    own.version = DIST_GRPC_VERSION;
    own.forms = config.forms;
    own.came_from = config.came_from;
    own.lease_ns = config.lease_ns;
    own.credit = config.credit;
    auto endpoint = std::make_unique<Endpoint>(*config.memory, std::move(own),
                                               make == nullptr ? nullptr : make(*config.memory));
    Starting starting{*endpoint, ""};
    Thread starter;
    if (!starter.start(start_main, &starting).ok()) {
      copy_text(why, size, "the system gives no further thread");
      return DIST_RESOURCE_EXHAUSTED;
    }
    starter.join();
    if (!starting.why.empty()) {
      copy_text(why, size, starting.why.c_str());
      return DIST_UNAVAILABLE;
    }
    *out = endpoint.get();
    *handle = endpoint.release();
    return DIST_OK;
  } catch (const std::bad_alloc&) {
    copy_text(why, size, "out of memory");
    return DIST_RESOURCE_EXHAUSTED;
  } catch (const std::exception& error) {
    copy_text(why, size, error.what());
    return DIST_INTERNAL;
  }
}

dist_status form_endpoint(void* handle, const Forming& wanted, Formed* out, char* why,
                          std::size_t size) noexcept {
  try {
    std::string text;
    const dist_status code = static_cast<Endpoint*>(handle)->form(wanted, out, &text);
    if (code != DIST_OK) copy_text(why, size, text.c_str());
    return code;
  } catch (const std::bad_alloc&) {
    copy_text(why, size, "out of memory");
    return DIST_RESOURCE_EXHAUSTED;
  }
}

bool endpoint_has_newcomers(void* handle) noexcept { return static_cast<Endpoint*>(handle)->has_newcomers(); }

Parting part_endpoint(void* handle) noexcept {
  Parting known;
  static_cast<Endpoint*>(handle)->stop(&known);
  return known;
}

void stop_endpoint(void* handle) noexcept {
  auto* const endpoint = static_cast<Endpoint*>(handle);
  endpoint->stop();
  delete endpoint;
}

}  // namespace dist::grpc_link
