/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins: transforms, image codecs, storage, samplers and formats of your own in a shared
 * library, built with only this header.
 *
 *     cc -shared -fPIC -I"$(python -c 'import headrace; print(headrace.include_dir())')" \
 *        mine.c -o libmine.so
 *     python -c 'import headrace as hr; print(hr.load_plugin("libmine.so"))'
 *
 * C99, and C++ as well (headrace/plugin.hpp has classes for it). A plug-in calls functions of the
 * engine only through pointers that are passed to it, so it does not link with Headrace.
 *
 * Ownership. The plug-in owns its table and everything that this points to, for the life of the
 * process: libraries are never unloaded. The engine owns what it passes to a function, which is
 * valid until the function returns.
 *
 * Threads. create() and destroy() are called by any thread, one at a time for each object. A
 * function that takes a `const void* self` is called by many threads at once on the same object,
 * which it must not change; one that takes a `void* self` by one thread at a time.
 *
 * Versions. HEADRACE_PLUGIN_ABI changes when a plug-in has to be compiled again; the engine rejects
 * any other version. Within a version, members are only ever appended: the sizes in the tables tell
 * the engine how many of them a plug-in knows, and `struct_size` tells the plug-in the same about
 * the structs that the engine passes. */
#ifndef HEADRACE_PLUGIN_H_
#define HEADRACE_PLUGIN_H_

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HEADRACE_PLUGIN_ABI 1

#if defined(__GNUC__)
#define HEADRACE_EXPORT __attribute__((visibility("default")))
#define HEADRACE_PRINTF __attribute__((format(printf, 3, 4), unused))
#else
#define HEADRACE_EXPORT
#define HEADRACE_PRINTF
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Values ---------------------------------------------------------------------------------- */

/* Return values. Any other nonzero value counts as HEADRACE_FAILED. */
enum {
  HEADRACE_OK = 0,
  HEADRACE_BAD_RECORD = 1,    /* an error of this record; the loader's on_error= applies */
  HEADRACE_BAD_ARGUMENTS = 2, /* create(), and shape() without a record: rejected before a run */
  HEADRACE_FAILED = 3,        /* the run ends */
  /* From a storage's functions: */
  HEADRACE_NOT_FOUND = 4,   /* nothing is at the path */
  HEADRACE_NOT_ALLOWED = 5, /* this user may not read it */
  HEADRACE_TRY_AGAIN = 6    /* temporary: the engine retries after a pause, at most three times */
};

/* Receives the error message of a function: headrace_fail(). */
typedef struct headrace_error {
  uint32_t struct_size;
  uint32_t capacity; /* size of `text` in bytes, including the terminating zero */
  char* text;        /* UTF-8 */
} headrace_error;

/* DLPack's DLDataType. */
typedef struct headrace_dtype {
  uint8_t code; /* HEADRACE_UINT ... */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} headrace_dtype;

enum { /* DLPack's DLDataTypeCode */
       HEADRACE_INT = 0,
       HEADRACE_UINT = 1,
       HEADRACE_FLOAT = 2,
       HEADRACE_BFLOAT = 4,
       HEADRACE_BOOL = 6
};

/* DLPack's DLTensor, member by member: a view that does not own its memory. Strides are in
 * elements. */
typedef struct headrace_view {
  void* data;
  int32_t device_type; /* 1: the host */
  int32_t device_id;
  int32_t ndim;
  headrace_dtype dtype;
  int64_t* shape;
  int64_t* strides;     /* never NULL */
  uint64_t byte_offset; /* 0 */
} headrace_view;

enum { HEADRACE_MAX_AXES = 8 };

/* Kinds of fields, as bits for headrace_transform.kinds. The comments give the axes of views. */
enum {
  HEADRACE_IMAGE = 1,      /* (height, width, channels) */
  HEADRACE_MASK = 2,       /* (height, width, 1): class ids */
  HEADRACE_LABEL = 4,      /* a number, (), or an array */
  HEADRACE_TENSOR = 8,     /* any */
  HEADRACE_BOXES = 16,     /* (rows, 4); rotated boxes: (rows, 5) or (rows, 8): box_format */
  HEADRACE_KEYPOINTS = 32, /* (..., 2 or more): x, y, and other values */
  HEADRACE_MASKS = 64,     /* (..., height, width): (rows, height, width), or one plane */
  HEADRACE_AUDIO = 128     /* (channels, frames), float32: sample_rate */
};

/* One field of a record, before a transform or after it. */
typedef struct headrace_field {
  uint32_t struct_size;
  int32_t kind;     /* one of the above */
  const char* name; /* "image" */
  /* Images and masks are currently planar: view.strides[1] is 1, and each channel is a plane. Use
   * the strides, because that may change. All other values are dense. */
  headrace_view view;
  /* The size of the record's images, to whose coordinates boxes, keypoints and masks refer; in the
   * output, their size after the transform. -1 if the transform does not take images, or if they
   * differ in size. */
  int64_t canvas_height, canvas_width;
  const char* box_format; /* for boxes: "xyxy", "xywh", "cxcywh", ...; "" for other fields */
  int64_t sample_rate;    /* for audio, frames per second; 0 for other fields */
} headrace_field;

/* ---- A record's random numbers --------------------------------------------------------------- */

typedef struct headrace_draws headrace_draws;

/* The record that a transform is applied to. Its numbers are a pure function of the loader's seed,
 * the epoch, the record's position and the transform's position in the list: the same on any number
 * of threads and processes, and after a resume. Every field of a record, and shape() as well as
 * run(), starts with the same numbers, so an image and its mask are treated alike. */
typedef struct headrace_record {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t index;    /* in its source */
  int64_t position; /* in the epoch */
  uint64_t seed;    /* for your own generator; 0 without HEADRACE_RANDOM */
  headrace_draws* draws;
  uint32_t (*bits)(headrace_draws* draws);            /* 32 random bits */
  double (*uniform)(headrace_draws* draws);           /* [0, 1) */
  int64_t (*below)(headrace_draws* draws, int64_t n); /* 0 ... n-1; 0 if n < 1 */
} headrace_record;

static inline double headrace_uniform(const headrace_record* record, double low, double high) {
  return low + (high - low) * record->uniform(record->draws);
}

static inline int64_t headrace_below(const headrace_record* record, int64_t n) {
  return record->below(record->draws, n);
}

static inline int headrace_coin(const headrace_record* record, double probability) {
  return record->uniform(record->draws) < probability;
}

/* ---- Parameters ------------------------------------------------------------------------------ */

enum {
  HEADRACE_PARAM_BOOL = 1,   /* headrace_value.integer, 0 or 1 */
  HEADRACE_PARAM_INT = 2,    /* .integer */
  HEADRACE_PARAM_FLOAT = 3,  /* .number */
  HEADRACE_PARAM_TEXT = 4,   /* .text; one of `choices` if there are any */
  HEADRACE_PARAM_INTS = 5,   /* .integers, .count of them; one integer counts as a list of one */
  HEADRACE_PARAM_FLOATS = 6, /* .numbers, likewise */
  HEADRACE_PARAM_REQUIRED = 1
};

/* The value of a parameter. No members will be added: create() receives an array of values. */
typedef struct headrace_value {
  int32_t type; /* HEADRACE_PARAM_BOOL ... */
  uint32_t count;
  int64_t integer;
  double number;
  const char* text;
  const int64_t* integers;
  const double* numbers;
} headrace_value;

typedef struct headrace_param {
  const char* name; /* the argument's name in Python: "strength" */
  const char* help; /* one sentence */
  int32_t type;
  uint32_t flags;          /* HEADRACE_PARAM_REQUIRED, or 0 and `fallback` is the default */
  headrace_value fallback; /* its type need not be set */
  /* Inclusive limits of a number, or of each number of a list. Both 0: no limits; -INFINITY or
   * INFINITY: no limit on that side. */
  double minimum, maximum;
  const char* const* choices; /* for a text; or NULL */
  uint32_t choice_count;
  uint32_t min_count, max_count; /* for a list; 0: any */
  uint32_t reserved;
} headrace_param;

/* ---- Transforms ------------------------------------------------------------------------------ */

enum {
  /* Exactly one of these two; the engine checks that it is true. */
  HEADRACE_VALUES = 1, /* changes values: images keep height and width, nothing in them moves */
  /* Flips, crops, resizes or warps: `kinds` must include every kind that the record has in the
   * image's coordinates (boxes, masks, keypoints), or the pipeline is rejected. Other kinds that it
   * takes (a label that says "left") are only passed together with images. */
  HEADRACE_MOVES = 2,
  HEADRACE_RANDOM = 4 /* uses random numbers; without this flag, there are none */
};

enum { /* headrace_transform.image_dtypes */
       HEADRACE_U8 = 1,
       HEADRACE_U16 = 2,
       HEADRACE_F16 = 4,
       HEADRACE_BF16 = 8,
       HEADRACE_F32 = 16
};

typedef struct headrace_params {
  const headrace_param* data;
  uint32_t count;
  uint32_t size; /* of one: sizeof(headrace_param) */
} headrace_params;

typedef struct headrace_transform {
  const char* name; /* its class in Python: "Vignette" */
  const char* help; /* what it does; shapes, dtypes, ranges */
  uint32_t flags;
  uint32_t kinds;        /* HEADRACE_IMAGE | HEADRACE_BOXES ... */
  uint32_t image_dtypes; /* of images and masks, HEADRACE_U8 | HEADRACE_F32 ...; 0: any */
  uint32_t reserved;
  headrace_params params;
  /* Creates an object with these values of the parameters, which are in the order of declaration
   * and valid during the call. *self may be NULL; if `create` is NULL, self is always NULL. */
  int32_t (*create)(const headrace_value* values, uint32_t count, void** self,
                    headrace_error* error);
  void (*destroy)(void* self); /* or NULL */
  /* Sets the result's shape and dtype, in output->view.shape (room for HEADRACE_MAX_AXES), .ndim
   * and .dtype, which are initially the input's; the views have no data. NULL: shape and dtype do
   * not change.
   *
   * Without a record (NULL), the call is for planning: extents that differ between records are -1
   * in the input, and may be -1 in the output. With a record, all extents are known, and the result
   * must match the planned one. */
  int32_t (*shape)(const void* self, const headrace_record* record, const headrace_field* input,
                   headrace_field* output, headrace_error* error);
  /* Computes the whole output from the input, which must not be changed. */
  int32_t (*run)(const void* self, const headrace_record* record, const headrace_field* input,
                 headrace_field* output, headrace_error* error);
} headrace_transform;

typedef struct headrace_transforms {
  const headrace_transform* data;
  uint32_t count;
  uint32_t size; /* of one: sizeof(headrace_transform) */
} headrace_transforms;

/* .params = HEADRACE_LIST(array): the array, its length, and the size of an element. */
#define HEADRACE_LIST(array) \
  {(array), (uint32_t)(sizeof(array) / sizeof((array)[0])), (uint32_t)sizeof((array)[0])}

/* ---- Codecs ---------------------------------------------------------------------------------- */

/* The bytes of a file. Bytes after them must not be read. */
typedef struct headrace_bytes {
  const uint8_t* data;
  uint64_t size;
} headrace_bytes;

enum { HEADRACE_SIGNATURE_BYTES = 16 };

/* How files of a codec begin. No members will be added. */
typedef struct headrace_signature {
  const uint8_t* bytes;
  const uint8_t* mask; /* of the same length: the bits to compare, at least 16; NULL: all */
  uint32_t offset;     /* position of `bytes` in the file */
  uint32_t length;     /* offset + length is at most HEADRACE_SIGNATURE_BYTES */
} headrace_signature;

typedef struct headrace_signatures {
  const headrace_signature* data;
  uint32_t count;
  uint32_t size; /* of one: sizeof(headrace_signature) */
} headrace_signatures;

enum { HEADRACE_MAX_CHANNELS = 16 };

enum {                        /* headrace_image_header.flags */
       HEADRACE_CMYK = 1,     /* 4 uint8 channels are amounts of ink */
       HEADRACE_NO_COLORS = 2 /* the channels are neither gray nor colors, and none is alpha */
};

/* An image, from the first bytes of its file. */
typedef struct headrace_image_header {
  uint32_t struct_size;
  int32_t width, height;  /* 1 or more */
  int32_t channels;       /* 1: gray, 2: gray and alpha, 3: RGB, 4: RGB and alpha. Any other number,
                             HEADRACE_MAX_CHANNELS at most, has no colors: such images are
                             delivered with mode="stored" only */
  headrace_dtype dtype;   /* of decode()'s output: uint8, uint16 or float32 (mode="stored" only) */
  int32_t bits;           /* per channel in the file; 0: as many as dtype has */
  int32_t orientation;    /* Exif's, 1 to 8; 0: unknown */
  uint32_t flags;         /* HEADRACE_CMYK | ... */
  uint64_t working_bytes; /* of memory that decode() allocates */
} headrace_image_header;

typedef struct headrace_decode {
  uint32_t struct_size;
  uint32_t reserved;
  headrace_bytes file;
  const headrace_image_header* header; /* the result of read_header() for it */
  int64_t x, y; /* the output's first pixel in the image; both 0 without HEADRACE_WINDOWS */
  /* (height, width, channels) of header->dtype, interleaved: strides[2] is 1. Use the strides.
   * decode() must write all of it. */
  headrace_view output;
} headrace_decode;

enum {
  /* decode() can decode any window of an image. Without this flag, the output is always the whole
   * image, which the engine then crops. */
  HEADRACE_WINDOWS = 1
};

/* An image codec. Its functions return HEADRACE_BAD_RECORD for a damaged file, to which on_error=
 * applies as to a damaged JPEG; HEADRACE_FAILED ends the run. */
typedef struct headrace_codec {
  const char* name;            /* "qoi": lowercase letters, digits and _ */
  const char* help;            /* what it reads */
  const char* const* suffixes; /* ".qoi", lower case; the first one names new files */
  uint32_t suffix_count;
  uint32_t flags;                 /* HEADRACE_WINDOWS */
  headrace_signatures signatures; /* any one matches; files are recognized only by content */
  /* Creates a decoder, which one thread uses for many images. `create` may be NULL: then self is
   * NULL. */
  int32_t (*create)(void** self, headrace_error* error);
  void (*destroy)(void* self); /* or NULL */
  /* Sets `width` and all members after it, which are initially 0. Must read only the header, and
   * must not allocate memory in proportion to numbers in it. */
  int32_t (*read_header)(void* self, const headrace_bytes* file, headrace_image_header* header,
                         headrace_error* error);
  int32_t (*decode)(void* self, const headrace_decode* work, headrace_error* error);
} headrace_codec;

typedef struct headrace_codecs {
  const headrace_codec* data;
  uint32_t count;
  uint32_t size; /* of one: sizeof(headrace_codec) */
} headrace_codecs;

/* ---- Storage --------------------------------------------------------------------------------- */

enum { HEADRACE_FILE = 1, HEADRACE_FOLDER = 2 };

/* What is at a path. A file is unchanged if its size, version and time are the same; one that has
 * changed since it was opened is an error. */
typedef struct headrace_path_status {
  uint32_t struct_size;
  int32_t kind;        /* HEADRACE_FILE or HEADRACE_FOLDER */
  uint64_t size;       /* of a file, in bytes */
  uint64_t version;    /* differs after a change: a hash of an ETag; 0: unknown */
  int64_t modified_ns; /* nanoseconds since 1970; 0: unknown */
} headrace_path_status;

typedef struct headrace_entries headrace_entries;

/* Receives the entries of a folder from list(). */
typedef struct headrace_listing {
  uint32_t struct_size;
  uint32_t reserved;
  headrace_entries* entries;
  /* `name`: without the path. Returns 0 if no more entries are needed. */
  int32_t (*add)(headrace_entries* entries, const char* name, int32_t kind);
} headrace_listing;

/* A storage: files whose paths begin with SCHEME://. Functions receive the full path. They may
 * block: they are called by the threads that read ahead, by many at once. */
typedef struct headrace_storage {
  const char* scheme;  /* "mine": lowercase letters, digits, +, - and . */
  const char* help;    /* what it is */
  const char* example; /* a path: "mine://bucket/train" */
  uint32_t flags;      /* 0 */
  uint32_t reserved;
  /* Creates an object for the life of the process, when the first path is used. `create` may be
   * NULL: then self is NULL. */
  int32_t (*create)(void** self, headrace_error* error);
  /* Sets `kind` and all members after it, which are initially 0. Follows links. */
  int32_t (*get_status)(const void* self, const char* path, headrace_path_status* status,
                        headrace_error* error);
  /* Adds each entry of a folder, in any order, without "." and ".."; an incomplete list is an
   * error. NULL: folders cannot be listed or opened. */
  int32_t (*list)(const void* self, const char* path, const headrace_listing* listing,
                  headrace_error* error);
  /* Reads up to `bytes` bytes from `offset` on into `out`; sets *got to their number, which may be
   * smaller, and is 0 only at the end of the file. `known`: the file as get_status() described it,
   * for a conditional request. */
  int32_t (*read)(const void* self, const char* path, const headrace_path_status* known,
                  uint64_t offset, void* out, uint64_t bytes, uint64_t* got, headrace_error* error);
} headrace_storage;

typedef struct headrace_storages {
  const headrace_storage* data;
  uint32_t count;
  uint32_t size; /* of one: sizeof(headrace_storage) */
} headrace_storages;

/* ---- Samplers -------------------------------------------------------------------------------- */

enum { /* headrace_sampler.per_record: the first argument of its class */
       HEADRACE_NOTHING = 0,
       HEADRACE_WEIGHTS = 1, /* a number per record */
       HEADRACE_LABELS = 2,  /* an integer or text per record, or the name of a field */
       HEADRACE_LENGTHS = 3  /* a number per record, or the name of a field */
};

/* The records that a sampler orders. */
typedef struct headrace_records {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t count;
  /* One per record, or NULL; valid as long as the object that create() makes. */
  const double* weights;
  const int64_t* integers; /* labels (texts are numbered in sorted order), or lengths */
  int64_t parts;           /* parts per user's unit, in which lengths count: 1 or 1000000 */
} headrace_records;

enum {                           /* headrace_sampler.flags */
       HEADRACE_REPLACEMENT = 1, /* a record may appear several times in an epoch */
       HEADRACE_ANY_POSITION = 2 /* order() is fast for any position */
};

/* A sampler: the record at each position of an epoch, as a function of seed and epoch that is the
 * same in every process. */
typedef struct headrace_sampler {
  const char* name; /* its class in hr.sampling: "strided" */
  const char* help;
  uint32_t flags;
  int32_t per_record; /* HEADRACE_NOTHING ... */
  headrace_params params;
  /* `create` may be NULL if there are no arguments: then self is NULL. */
  int32_t (*create)(const headrace_value* values, uint32_t count, const headrace_records* records,
                    void** self, headrace_error* error);
  void (*destroy)(void* self); /* or NULL */
  /* Number of positions in every epoch. NULL: the number of records. */
  int64_t (*size)(const void* self);
  /* Fills `out` with the records, counted from 0, at `count` positions starting at `begin`. The
   * engine requests a whole epoch and keeps it; with HEADRACE_ANY_POSITION it requests a few at a
   * time. */
  int32_t (*order)(const void* self, uint64_t seed, uint64_t epoch, int64_t begin, int64_t count,
                   int64_t* out, headrace_error* error);
  /* Sets the size of each batch, if the sampler decides it: *sizes, owned by the object, must add
   * up to size(), and be the same for every epoch. NULL: the loader's batch_size applies. */
  int32_t (*batches)(const void* self, const int64_t** sizes, int64_t* count,
                     headrace_error* error);
} headrace_sampler;

typedef struct headrace_samplers {
  const headrace_sampler* data;
  uint32_t count;
  uint32_t size; /* of one: sizeof(headrace_sampler) */
} headrace_samplers;

/* ---- Formats --------------------------------------------------------------------------------- */

enum { HEADRACE_TEXT = 256, HEADRACE_BYTES = 512 }; /* additional kinds, for columns only */

/* A field of a format's records. */
typedef struct headrace_column {
  uint32_t struct_size;
  /* HEADRACE_IMAGE, HEADRACE_MASK, HEADRACE_AUDIO: an encoded file. HEADRACE_LABEL: an integer.
   * HEADRACE_TENSOR: numbers. HEADRACE_TEXT: UTF-8. HEADRACE_BYTES */
  int32_t kind;
  const char* name; /* "image" */
  /* For tensors: */
  headrace_dtype dtype;
  int32_t ndim;
  int64_t shape[HEADRACE_MAX_AXES]; /* -1: differs from record to record */
} headrace_column;

typedef struct headrace_opened headrace_opened;

/* Functions with which open() reads from any storage and describes the records. Each returns
 * HEADRACE_OK, or a status with a message in `error`, which open() then returns. */
typedef struct headrace_opening {
  uint32_t struct_size;
  uint32_t reserved;
  headrace_opened* opened;
  int32_t (*get_status)(headrace_opened* opened, const char* path, headrace_path_status* status,
                        headrace_error* error);
  /* Calls each() for the entries of a folder, sorted by name, until it returns 0. */
  int32_t (*list)(headrace_opened* opened, const char* path,
                  int32_t (*each)(void* context, const char* name, int32_t kind), void* context,
                  headrace_error* error);
  /* Reads `bytes` bytes into `out`; it is an error if the file ends before that. */
  int32_t (*read)(headrace_opened* opened, const char* path, uint64_t offset, void* out,
                  uint64_t bytes, headrace_error* error);
  int32_t (*add_column)(headrace_opened* opened, const headrace_column* column,
                        headrace_error* error);
  /* Adds a file with records; adds a record, which is a range of bytes of the last added file. */
  int32_t (*add_file)(headrace_opened* opened, const char* path, headrace_error* error);
  int32_t (*add_record)(headrace_opened* opened, uint64_t offset, uint64_t bytes,
                        headrace_error* error);
} headrace_opening;

/* A field of a record, for parse() to fill. No members will be added. */
typedef struct headrace_cell {
  const uint8_t* data; /* in the record's bytes, or from allocate() */
  uint64_t bytes;
  int64_t integer;                  /* for a HEADRACE_LABEL, which has no bytes */
  int64_t shape[HEADRACE_MAX_AXES]; /* for a tensor; initially its column's */
  uint32_t wanted;                  /* 0: do not fill it */
  uint32_t reserved;
} headrace_cell;

/* A record to parse. The engine has read its bytes. */
typedef struct headrace_parse {
  uint32_t struct_size;
  uint32_t count; /* number of cells: one per column */
  int64_t record;
  headrace_bytes bytes;
  headrace_cell* cells;
  headrace_opened* opened;
  /* Allocates memory for a cell's data, valid until the next record; NULL if there is none. May be
   * called once per cell. */
  uint8_t* (*allocate)(headrace_opened* opened, uint32_t cell, uint64_t bytes);
} headrace_parse;

/* A format: containers whose records are ranges of bytes, which the engine reads ahead, from any
 * storage. parse() finds the fields in them. */
typedef struct headrace_format {
  const char* name;    /* the name of its function in Python: "rows" */
  const char* help;    /* what it reads */
  const char* example; /* one line of Python */
  uint32_t flags;      /* 0 */
  uint32_t reserved;
  headrace_params params;
  /* Returns 1 if the path has this format. `first`: the file's first bytes, at most 64; NULL for a
   * folder, which is recognized by its name. Called if no built-in format recognizes the path,
   * before a folder is opened as a folder of images. */
  int32_t (*recognizes)(const char* path, const headrace_bytes* first);
  /* Adds the columns, files and records. The object, which may be NULL, lives as long as the
   * source. */
  int32_t (*open)(const headrace_value* values, uint32_t count, const char* path,
                  const headrace_opening* opening, void** self, headrace_error* error);
  void (*close)(void* self); /* or NULL */
  /* Fills the wanted cells. */
  int32_t (*parse)(const void* self, const headrace_parse* record, headrace_error* error);
} headrace_format;

typedef struct headrace_formats {
  const headrace_format* data;
  uint32_t count;
  uint32_t size; /* of one: sizeof(headrace_format) */
} headrace_formats;

/* ---- The table ------------------------------------------------------------------------------- */

typedef struct headrace_plugin {
  uint32_t abi;                   /* HEADRACE_PLUGIN_ABI */
  uint32_t struct_size;           /* sizeof(headrace_plugin) */
  const char* name;               /* "mine": lowercase letters, digits, - and _ */
  const char* version;            /* "1.0" */
  const char* help;               /* one sentence, or NULL */
  headrace_transforms transforms; /* lists may be empty, but not all of them */
  headrace_codecs codecs;
  headrace_storages storages;
  headrace_samplers samplers;
  headrace_formats formats;
} headrace_plugin;

/* The only symbol that a plug-in exports. `abi` is the engine's; return NULL to reject it. */
HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t abi);

/* ---- For plug-ins ---------------------------------------------------------------------------- */

/* return headrace_fail(error, HEADRACE_BAD_RECORD, "the image is %d pixels high", height); */
HEADRACE_PRINTF static inline int32_t headrace_fail(headrace_error* error, int32_t code,
                                                    const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->text, error->capacity, format, arguments);
  va_end(arguments);
  return code;
}

static inline int headrace_is(headrace_dtype dtype, int code, int bits) {
  return dtype.code == code && dtype.bits == bits && dtype.lanes == 1;
}

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_PLUGIN_H_ */
