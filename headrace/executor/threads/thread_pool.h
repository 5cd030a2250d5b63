// SPDX-License-Identifier: Apache-2.0
// The worker threads of this process, shared by all loaders.
//
// A PoolClient (one per loader) gives work to at most as many workers as it allows, taking turns
// with the others. Workers own objects that are expensive to make (a Renderer) and lend it to the
// client.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "headrace/image/render.h"

namespace headrace {

class PoolClient {
 public:
  virtual ~PoolClient() = default;
  virtual int max_workers() const = 0;
  // Does one piece of work and returns true, or returns false when there is none now. Called from
  // any worker; must not throw.
  virtual bool work(Renderer& renderer) = 0;
};

class ThreadPool {
 public:
  // The process's workers: as many as the client that allows most, none where there is no client.
  static ThreadPool& workers();
  // The one thread on which steps written in Python run.
  static ThreadPool& python();
  // Threads that wait for other processes which run such steps.
  static ThreadPool& python_workers();

  // From now on `client` is asked for work; the pool grows to its max_workers(), python() to one.
  // Throws Exception HR0790, and the client is none, where the system refuses a thread.
  void add(PoolClient& client);
  // Returns when no worker is inside the client any more, and none will come. Workers that no other
  // client needs are gone by then, or go as soon as they have done what they are at.
  void remove(PoolClient& client);
  // There may be new work for so many workers; no more than these wake up. Cheap; any thread.
  void wake(int workers);
  size_t threads() const;
  size_t asleep() const;  // of them
  // Stops and joins all workers: before Python tears down. add() starts them again.
  void shutdown();

 private:
  explicit ThreadPool(int max_threads);
  ~ThreadPool() = delete;  // lives as long as the process
  struct State;
  State* state_;
};

// A client's place in a pool, for as long as it lives.
class Membership {
 public:
  Membership(ThreadPool& pool, PoolClient& client) : pool_(pool), client_(client) {
    pool_.add(client_);
  }
  ~Membership() { pool_.remove(client_); }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

 private:
  ThreadPool& pool_;
  PoolClient& client_;
};

// Workers that a client wants beside its own thread, from the first time on that it needs them.
// The client declares it last: no worker is inside of it when the rest goes.
class Helpers {
 public:
  Helpers(PoolClient& client, int most) : client_(client), most_(most) {}
  ~Helpers() {
    if (is_member_) ThreadPool::workers().remove(client_);
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  int most() const { return most_; }  // for the client's max_workers()
  // There is work for so many, the caller included. Called by one thread at a time.
  void wake_for(size_t workers);

 private:
  PoolClient& client_;
  int most_;  // none where the system has had no thread for them
  bool is_member_ = false;
};

// On all allowed cores, wherever the calling thread is bound. Throws Exception HR0790 where the
// system refuses one.
std::thread start_thread(std::function<void()> body);

// Stops all threads of the engine: before Python tears down.
void shutdown_threads();

// True in a child that was forked after the engine started: its threads do not exist there.
// Everything that would need them throws HR0701 instead of hanging.
bool forked_from_running_engine();
void throw_if_forked();
// The same, and from now on the process has such a thread, which is not the pool's.
void announce_engine_thread();

}  // namespace headrace
