#pragma once
// OrderedDict: names with values in the order of insertion, as state dicts and named_parameters() return them. Look-up
// is a scan below kIndexFrom entries and a hash table above. Not for erasing in the middle of long dicts (linear).
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vesta/error.h"

namespace vesta {

template <class Key, class Value>
class OrderedDict {
 public:
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    const Key& key() const { return pair_.first; }
    Value& value() { return pair_.second; }
    const Value& value() const { return pair_.second; }
    Value& operator*() { return pair_.second; }
    const Value& operator*() const { return pair_.second; }
    Value* operator->() { return &pair_.second; }
    const Value* operator->() const { return &pair_.second; }
    const std::pair<Key, Value>& pair() const { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };

  // `what` names an entry in messages.
  explicit OrderedDict(std::string what = "Key") : what_(std::move(what)) {}
  OrderedDict(std::initializer_list<std::pair<Key, Value>> items) : OrderedDict() {
    for (const auto& item : items) insert(item.first, item.second);
  }

  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  bool empty() const { return items_.empty(); }
  auto begin() { return items_.begin(); }
  auto begin() const { return items_.begin(); }
  auto end() { return items_.end(); }
  auto end() const { return items_.end(); }
  // ValueError where it is empty.
  Item& front() {
    VESTA_CHECK(!items_.empty(), "Called front() on an empty OrderedDict");
    return items_.front();
  }
  Item& back() {
    VESTA_CHECK(!items_.empty(), "Called back() on an empty OrderedDict");
    return items_.back();
  }
  const Item& front() const { return const_cast<OrderedDict*>(this)->front(); }
  const Item& back() const { return const_cast<OrderedDict*>(this)->back(); }
  const std::string& key_description() const { return what_; }
  // The entry at a position; IndexError outside [0, size()). Not for dicts whose keys are numbers.
  template <class I, std::enable_if_t<std::is_integral_v<I> && !std::is_integral_v<Key>, int> = 0>
  Item& operator[](I i) {
    VESTA_CHECK_AS(IndexError, size_t(i) < items_.size(), "Index ", i, " is out of bounds");
    return items_[size_t(i)];
  }
  template <class I, std::enable_if_t<std::is_integral_v<I> && !std::is_integral_v<Key>, int> = 0>
  const Item& operator[](I i) const {
    return (*const_cast<OrderedDict*>(this))[i];
  }
  const std::vector<Item>& items() const { return items_; }
  std::vector<Key> keys() const {
    std::vector<Key> out;
    for (const Item& item : items_) out.push_back(item.key());
    return out;
  }
  std::vector<Value> values() const {
    std::vector<Value> out;
    for (const Item& item : items_) out.push_back(item.value());
    return out;
  }
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> out;
    for (const Item& item : items_) out.push_back(item.pair());
    return out;
  }

  bool contains(const Key& key) const { return find(key) != nullptr; }
  Value* find(const Key& key) {
    const size_t i = position(key);
    return i < items_.size() ? &items_[i].value() : nullptr;
  }
  const Value* find(const Key& key) const { return const_cast<OrderedDict*>(this)->find(key); }
  // ValueError where the key is missing, and for insert where it is there.
  Value& operator[](const Key& key) {
    Value* value = find(key);
    VESTA_CHECK(value, what_, " '", key, "' is not defined");
    return *value;
  }
  const Value& operator[](const Key& key) const { return (*const_cast<OrderedDict*>(this))[key]; }
  Value& insert(Key key, Value value) {
    VESTA_CHECK(!contains(key), what_, " '", key, "' already defined");
    if (!index_.empty()) index_.emplace(key, items_.size());
    items_.emplace_back(std::move(key), std::move(value));
    if (index_.empty() && items_.size() >= kIndexFrom) rebuild();
    return items_.back().value();
  }
  Value& insert_or_assign(Key key, Value value) {
    if (Value* there = find(key)) return *there = std::move(value);
    return insert(std::move(key), std::move(value));
  }
  // All of other's entries; ValueError where one is there already, and then the ones before it are in.
  void update(const OrderedDict& other) {
    for (const Item& item : other) insert(item.key(), item.value());
  }
  void erase(const Key& key) {
    const size_t i = position(key);
    VESTA_CHECK(i < items_.size(), what_, " '", key, "' is not defined");
    items_.erase(items_.begin() + std::ptrdiff_t(i));
    index_.clear();
    if (items_.size() >= kIndexFrom) rebuild();
  }
  void clear() {
    items_.clear();
    index_.clear();
  }

 private:
  static constexpr size_t kIndexFrom = 16;
  size_t position(const Key& key) const {
    if (!index_.empty()) {
      const auto it = index_.find(key);
      return it == index_.end() ? items_.size() : it->second;
    }
    size_t i = 0;
    while (i < items_.size() && !(items_[i].key() == key)) ++i;
    return i;
  }
  void rebuild() {
    for (size_t i = 0; i < items_.size(); ++i) index_.emplace(items_[i].key(), i);
  }

  std::vector<Item> items_;
  std::unordered_map<Key, size_t> index_;
  std::string what_;
};

}  // namespace vesta
