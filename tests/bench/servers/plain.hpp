// SPDX-License-Identifier: Apache-2.0
// The limit: what a programmer would write in twenty lines for one variable. A unary call of plain gRPC
// copies the bytes into or out of existing memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace bench::servers {

class PlainServer {
 public:
  explicit PlainServer(std::size_t bytes);
  ~PlainServer();
  std::string address() const;

 private:
  struct Running;
  std::unique_ptr<Running> running_;
};

class PlainClient {
 public:
  explicit PlainClient(const std::string& address);
  ~PlainClient();
  // Both throw std::runtime_error if the call fails.
  void push(const std::vector<std::byte>& from);
  void pull(std::vector<std::byte>& into);

 private:
  struct Stub;
  std::unique_ptr<Stub> stub_;
};

}  // namespace bench::servers
