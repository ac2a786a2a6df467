// SPDX-License-Identifier: Apache-2.0
// Replaces a header that Gloo's tcp/pair.h and tcp/context.h include and Debian's package lacks. It is used
// only if Gloo's own header is not installed. The two headers declare members with these types, so
// WeakNonOwningPtr must have the same size as Gloo's, and be copied and destroyed in the same way.
#pragma once

#include <memory>

namespace gloo {

template <class T>
class NonOwningPtr;

template <class T>
class WeakNonOwningPtr final {
 protected:
  std::weak_ptr<T> ptr_;
};

}  // namespace gloo
