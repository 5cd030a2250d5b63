// SPDX-License-Identifier: Apache-2.0
// The worker threads of this process, shared by all loaders.
//
// A PoolClient (one per loader) gives work to at most as many workers as it allows; clients take
// turns. Workers own objects that are expensive to make (a Renderer) and lend it to the client.
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
  // The process's workers: as many as the client that allows the most; none without clients.
  static ThreadPool& workers();
  // The one thread that runs Python steps.
  static ThreadPool& python();
  // Threads that wait for the worker processes that run Python steps.
  static ThreadPool& python_workers();

  // From now on the pool requests work from `client`, and grows to its max_workers(); python()
  // grows to one thread. Throws Exception HR0790, without adding the client, if a thread cannot be
  // created.
  void add(PoolClient& client);
  // Returns when no worker is inside the client, and none will enter it. Workers that no other
  // client needs have ended by then, or end after their current work.
  void remove(PoolClient& client);
  // Call it when there may be new work for this many workers; no more than these wake up. Cheap;
  // any thread.
  void wake(int workers);
  size_t threads() const;
  size_t asleep() const;  // of them
  // Stops and joins all workers, before Python is finalized. add() starts them again.
  void shutdown();

 private:
  explicit ThreadPool(int max_threads);
  ~ThreadPool() = delete;  // lives as long as the process
  struct State;
  State* state_;
};

// Keeps a client in a pool as long as it lives.
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

// Workers that help a client's own thread, added when they are first needed. Must be the client's
// last member, so that no worker is inside the client when the other members are destroyed.
class Helpers {
 public:
  Helpers(PoolClient& client, int most) : client_(client), most_(most) {}
  ~Helpers() {
    if (is_member_) ThreadPool::workers().remove(client_);
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  int most() const { return most_; }  // for the client's max_workers()
  // There is work for this many threads, the caller included. Called by one thread at a time.
  void wake_for(size_t workers);

 private:
  PoolClient& client_;
  int most_;  // 0 if the system could not create a thread
  bool is_member_ = false;
};

// Starts a thread on all allowed cores, whichever the calling thread is bound to. Throws Exception
// HR0790 if it cannot be created.
std::thread start_thread(std::function<void()> body);

// Stops all threads of the engine, before Python is finalized.
void shutdown_threads();

// True in a child that was forked after the engine started: its threads do not exist there.
// Functions that need them throw HR0701 instead of hanging.
bool forked_from_running_engine();
void throw_if_forked();
// The same, and records that the process has an engine thread from now on that belongs to no pool.
void announce_engine_thread();

}  // namespace headrace
