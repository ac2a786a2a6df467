// SPDX-License-Identifier: Apache-2.0
// IntrusiveList: a doubly linked list of objects that contain their links, so that no operation allocates or
// fails. An object derives from one ListLink for each list that it can be in. The tag distinguishes these
// links; by convention it is the class that owns the list.
//
// The links form a circle through the head. An object must be removed before it is destroyed, and a list must
// not be moved. Nothing here is synchronized.
#pragma once

namespace dist {

template <class T, class Tag>
class IntrusiveList;

template <class Tag>
class ListLink {
 public:
  ListLink() noexcept = default;
  ListLink(const ListLink&) = delete;
  ListLink& operator=(const ListLink&) = delete;

  bool linked() const noexcept { return before_ != nullptr; }
  // The address of the link that follows this one, or followed it before it was removed. For prefetching
  // only.
  const void* behind() const noexcept { return next_; }

 private:
  template <class T, class OfList>
  friend class IntrusiveList;
  ListLink* next_ = nullptr;
  ListLink* before_ = nullptr;  // NULL: in no list
};

template <class T, class Tag>
class IntrusiveList {
  using Link = ListLink<Tag>;

 public:
  // Visits the objects in order. The current object may be removed meanwhile, but not the next one.
  class Iterator {
   public:
    explicit Iterator(Link* at) noexcept : at_(at), next_(at->next_) {}
    T& operator*() const noexcept { return static_cast<T&>(*at_); }
    Iterator& operator++() noexcept {
      at_ = next_;
      next_ = at_->next_;
      return *this;
    }
    bool operator!=(const Iterator& other) const noexcept { return at_ != other.at_; }

   private:
    Link* at_;
    Link* next_;
  };

  IntrusiveList() noexcept { head_.next_ = head_.before_ = &head_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  bool empty() const noexcept { return head_.next_ == &head_; }
  // The list must not be empty.
  T& front() const noexcept { return static_cast<T&>(*head_.next_); }
  T& back() const noexcept { return static_cast<T&>(*head_.before_); }
  // NULL if the list is empty.
  T* first() const noexcept { return object(head_.next_); }
  T* last() const noexcept { return object(head_.before_); }
  // The object behind `one`; NULL if it is the last one.
  T* after(T& one) const noexcept { return object(link(one).next_); }
  Iterator begin() noexcept { return Iterator(head_.next_); }
  Iterator end() noexcept { return Iterator(&head_); }

  // `added` must be in no list with this tag.
  void push_front(T& added) noexcept { insert(link(added), head_, *head_.next_); }
  void push_back(T& added) noexcept { insert(link(added), *head_.before_, head_); }
  // Removes the object from its list. Returns whether that is empty now.
  static bool remove(T& one) noexcept {
    Link& gone = link(one);
    Link* const before = gone.before_;
    before->next_ = gone.next_;
    gone.next_->before_ = before;
    gone.before_ = nullptr;
    return gone.next_ == before;
  }
  // Removes the first object; NULL if the list is empty.
  T* pop_front() noexcept {
    T* const taken = first();
    if (taken != nullptr) remove(*taken);
    return taken;
  }

 private:
  static Link& link(T& object) noexcept { return object; }
  T* object(Link* at) const noexcept { return at == &head_ ? nullptr : static_cast<T*>(at); }
  static void insert(Link& added, Link& before, Link& behind) noexcept {
    added.before_ = &before;
    added.next_ = &behind;
    before.next_ = &added;
    behind.before_ = &added;
  }

  Link head_;
};

}  // namespace dist
