// OrderedDict: values by name, in the order in which they came.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "lazuli/error.h"

namespace lazuli::torch_names {

template <class Key, class T>
class OrderedDict {
 public:
  struct Item : std::pair<Key, T> {
    using std::pair<Key, T>::pair;
    Item(std::pair<Key, T> p)  // NOLINT(google-explicit-constructor)
        : std::pair<Key, T>(std::move(p)) {}
    const Key& key() const { return this->first; }
    T& value() { return this->second; }
    const T& value() const { return this->second; }
    T* operator->() { return &this->second; }
    T& operator*() { return this->second; }
  };
  OrderedDict() = default;
  OrderedDict(std::initializer_list<Item> items) : items_(items) {}
  explicit OrderedDict(std::vector<std::pair<Key, T>> items) : items_(items.begin(), items.end()) {}
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  std::size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  bool empty() const { return items_.empty(); }
  Item& front() { return items_.front(); }
  Item& back() { return items_.back(); }
  const std::vector<Item>& items() const { return items_; }
  // Null if there is none.
  const T* find(const Key& key) const {
    for (const Item& item : items_) {
      if (item.key() == key) return &item.value();
    }
    return nullptr;
  }
  T* find(const Key& key) { return const_cast<T*>(std::as_const(*this).find(key)); }
  bool contains(const Key& key) const { return find(key) != nullptr; }
  // By key, which throws Error(kNotFound), or by position, which throws Error(kOutOfRange).
  T& operator[](const Key& key) { return const_cast<T&>(std::as_const(*this)[key]); }
  const T& operator[](const Key& key) const {
    if (const T* const found = find(key)) return *found;
    throw Error(ErrorCode::kNotFound, "OrderedDict: there is no \"" + key + "\"");
  }
  Item& operator[](std::size_t i) { return const_cast<Item&>(std::as_const(*this)[i]); }
  const Item& operator[](std::size_t i) const {
    if (i < size()) return items_[i];
    throw Error(ErrorCode::kOutOfRange, "OrderedDict: there is no item " + std::to_string(i) +
                                            ", it has " + std::to_string(size()));
  }
  // Throws Error(kInvalidArgument) for a key that is there.
  T& insert(Key key, T value) {
    if (contains(key))
      throw Error(ErrorCode::kInvalidArgument, "OrderedDict: \"" + key + "\" is there already");
    return items_.emplace_back(std::move(key), std::move(value)).value();
  }
  void update(const OrderedDict& other) {
    for (const Item& item : std::vector<Item>(other.items_)) insert(item.key(), item.value());
  }
  // Throws Error(kNotFound).
  void erase(const Key& key) {
    (*this)[key];
    std::erase_if(items_, [&](const Item& item) { return item.key() == key; });
  }
  T pop(const Key& key) {
    T value = (*this)[key];
    erase(key);
    return value;
  }
  void clear() { items_.clear(); }
  void reserve(std::size_t count) { items_.reserve(count); }
  std::vector<Key> keys() const {
    std::vector<Key> result;
    for (const Item& item : items_) result.push_back(item.key());
    return result;
  }
  std::vector<T> values() const {
    std::vector<T> result;
    for (const Item& item : items_) result.push_back(item.value());
    return result;
  }
  std::vector<std::pair<Key, T>> pairs() const { return {items_.begin(), items_.end()}; }

 private:
  std::vector<Item> items_;
};

}  // namespace lazuli::torch_names
