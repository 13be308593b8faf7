/* Shifts the wall clock of a process by the seconds in the file STEPPED_CLOCK, as a step of NTP does.

   Only CLOCK_REALTIME is shifted. Monotonic clocks and the lengths of sleeps stay as they are. A wait until a time of
   the wall clock gets the true time. libfaketime (0.9.10) can't be used: with an unshifted CLOCK_MONOTONIC the sleep of
   Python 3.11 (clock_nanosleep with TIMER_ABSTIME) fails with EINVAL. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* A deadline is of the wall clock if it is behind 2001; a machine doesn't run for thirty years. */
#define WALL 1000000000L

static volatile long *shift;

static long offset(void) {
  return shift ? *shift : 0;
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("STEPPED_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *found = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (found != MAP_FAILED) shift = found;
}

#define REAL(name, version) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlvsym(RTLD_NEXT, #name, version)

int clock_gettime(clockid_t clock, struct timespec *now) {
  REAL(clock_gettime, "GLIBC_2.17");
  int failed = real(clock, now);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
  return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
  (void)zone;
  struct timespec found;
  int failed = clock_gettime(CLOCK_REALTIME, &found);
  now->tv_sec = found.tv_sec;
  now->tv_usec = found.tv_nsec / 1000;
  return failed;
}

time_t time(time_t *now) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  if (now) *now = found.tv_sec;
  return found.tv_sec;
}

int timespec_get(struct timespec *now, int base) {
  return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, now) ? base : 0;
}

static struct timespec true_time(const struct timespec *deadline) {
  struct timespec found = *deadline;
  if (found.tv_sec > WALL) found.tv_sec -= offset();
  return found;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *deadline) {
  REAL(pthread_cond_timedwait, "GLIBC_2.3.2");
  struct timespec until = true_time(deadline);
  return real(condition, mutex, &until);
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *deadline) {
  REAL(cnd_timedwait, "GLIBC_2.34");
  struct timespec until = true_time(deadline);
  return real(condition, mutex, &until);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *deadline) {
  REAL(sem_timedwait, "GLIBC_2.34");
  struct timespec until = true_time(deadline);
  return real(semaphore, &until);
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *deadline) {
  REAL(pthread_mutex_timedlock, "GLIBC_2.34");
  struct timespec until = true_time(deadline);
  return real(mutex, &until);
}
