// The content store: what gets a name, what is gone on from, who waits.
#include "image/blobs.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "image/blob_needs.hpp"
#include "image/folders.hpp"
#include "image/layout_builder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace holt::image {
namespace {

class Blobs : public ::testing::Test {
 protected:
  static Descriptor of(const std::string& bytes) {
    return test::parsed_descriptor("application/vnd.oci.image.layer.v1.tar", bytes);
  }
  BlobDownload download(const Descriptor& blob, BlobStream& stream) {
    return {blobs_, blob, blobs_.lock(blob.digest, cancel_), stream, cancel_};
  }
  void store(const std::string& bytes) {
    BlobStream stream;
    auto sink = download(of(bytes), stream);
    sink.write(bytes);
    sink.commit();
  }
  static std::string content(const std::filesystem::path& path) { return read_file(path, 1 << 20); }

  TempDir dir_;
  BlobStore blobs_{dir_.path()};
  CancellationToken cancel_;
};

ErrorCode code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::internal;
}

TEST_F(Blobs, ABlobGetsItsNameWhenItIsWhole) {
  auto blob = of("0123456789");
  BlobStream stream;
  auto sink = download(blob, stream);
  sink.write("01234");
  EXPECT_FALSE(blobs_.has(blob));
  sink.write("56789");
  sink.commit();
  EXPECT_TRUE(blobs_.has(blob));
  EXPECT_EQ(content(blobs_.path(blob.digest)), "0123456789");
  EXPECT_EQ(blobs_.partial_size(blob.digest), 0U);
  EXPECT_TRUE(blobs_.is_sound(blob.digest, std::nullopt));
  EXPECT_EQ(blobs_.all(), std::vector<std::string>{blob.digest});
  struct stat status{};
  ASSERT_EQ(::stat(blobs_.path(blob.digest).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0444U);
}

TEST_F(Blobs, ABeginningIsGoneOnFromAndDigestedAgain) {
  auto blob = of("0123456789");
  {
    BlobStream stream;
    download(blob, stream).write("0123");
  }
  EXPECT_EQ(blobs_.partial_size(blob.digest), 4U);
  BlobStream stream;
  auto sink = download(blob, stream);
  EXPECT_EQ(sink.offset(), 4U);
  EXPECT_TRUE(sink.resumed());
  sink.write("456789");
  sink.commit();
  EXPECT_EQ(content(blobs_.path(blob.digest)), "0123456789");
}

TEST_F(Blobs, AWrongBeginningIsSeenAndBeginsAgain) {
  auto blob = of("0123456789");
  make_private_directory(blobs_.partial(blob.digest).parent_path());
  write_file_atomically(blobs_.partial(blob.digest), "xxxx");
  BlobStream stream;
  auto sink = download(blob, stream);
  sink.write("456789");
  EXPECT_FALSE(sink.is_right());
  EXPECT_EQ(code_of([&] { sink.commit(); }), ErrorCode::digest_mismatch);
  sink.restart();
  EXPECT_EQ(sink.offset(), 0U);
  sink.write("0123456789");
  sink.commit();
  EXPECT_TRUE(blobs_.is_sound(blob.digest, std::nullopt));
}

TEST_F(Blobs, ABeginningLongerThanTheBlobIsNotUsed) {
  auto blob = of("0123456789");
  make_private_directory(blobs_.partial(blob.digest).parent_path());
  write_file_atomically(blobs_.partial(blob.digest), "0123456789and more");
  BlobStream stream;
  EXPECT_EQ(download(blob, stream).offset(), 0U);
}

TEST_F(Blobs, IMG_01_MoreBytesThanTheDescriptorSaysAreRefused) {
  auto blob = of("0123456789");
  BlobStream stream;
  auto sink = download(blob, stream);
  sink.write("0123456789");
  EXPECT_EQ(code_of([&] { sink.write("x"); }), ErrorCode::digest_mismatch);
}

TEST_F(Blobs, IMG_01_OtherBytesAndFewerBytesGetNoName) {
  auto blob = of("0123456789");
  for (const char* bytes : {"0123456780", "012345678"}) {
    BlobStream stream;
    auto sink = download(blob, stream);
    sink.write(bytes);
    EXPECT_EQ(code_of([&] { sink.commit(); }), ErrorCode::digest_mismatch);
    sink.discard();
    EXPECT_FALSE(blobs_.has(blob));
    EXPECT_EQ(blobs_.partial_size(blob.digest), 0U);
  }
}

TEST_F(Blobs, IMG_03_NothingButADigestBecomesAFileName) {
  std::string hex(64, 'a');
  for (const std::string& text :
       std::vector<std::string>{"sha256:../../../../tmp/x", "sha256:" + hex.substr(1), "sha256:" + hex + "a",
                                "sha256:" + std::string(64, 'A'), "md5:" + hex.substr(32),
                                "sha512:" + hex + hex, "", "sha256+b64:" + hex, hex,
                                "sha256:" + std::string(10 << 10, 'a'), "sha256:" + hex.substr(1) + "/"}) {
    EXPECT_THROW(blobs_.path(text), InvalidArgument) << text;
    EXPECT_THROW(blobs_.partial(text), InvalidArgument) << text;
    EXPECT_THROW(blobs_.lock(text, cancel_), InvalidArgument) << text;
    EXPECT_THROW(Folders{dir_.path()}.entry(text), InvalidArgument) << text;
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

TEST_F(Blobs, ALinkInABlobsPlaceIsNotFollowed) {
  auto blob = of("0123456789");
  write_file_atomically(dir_.path() / "elsewhere", "0123456789");
  make_private_directory(blobs_.path(blob.digest).parent_path());
  std::filesystem::create_symlink(dir_.path() / "elsewhere", blobs_.path(blob.digest));
  EXPECT_FALSE(blobs_.has(blob));
  EXPECT_FALSE(blobs_.is_sound(blob.digest, std::nullopt));
  EXPECT_FALSE(blobs_.read(blob.digest, 100).has_value());
}

TEST_F(Blobs, ASecondOneWaitsForTheFirstAndFindsTheBlob) {
  auto blob = of("0123456789");
  std::optional<FileLock> held(blobs_.lock(blob.digest, cancel_));
  bool found = false;
  std::thread second([&] {
    FileLock lock = blobs_.lock(blob.digest, cancel_);
    found = blobs_.has(blob);
  });
  {
    BlobStream stream;
    BlobDownload sink(blobs_, blob, std::move(*held), stream, cancel_);
    held.reset();
    sink.write("0123456789");
    sink.commit();
  }
  second.join();
  EXPECT_TRUE(found);
}

TEST_F(Blobs, CancellationEndsTheWaitForALock) {
  auto blob = of("0123456789");
  FileLock held = blobs_.lock(blob.digest, cancel_);
  CancellationToken other;
  std::thread second(
      [&] { EXPECT_EQ(code_of([&] { blobs_.lock(blob.digest, other); }), ErrorCode::cancelled); });
  other.cancel();
  second.join();
}

TEST_F(Blobs, ADamagedDocumentIsNotRead) {
  std::string digest = test::digest_of("{}");
  blobs_.put(digest, "{}", dir_.path(), cancel_);
  EXPECT_EQ(blobs_.read(digest, 100), "{}");
  EXPECT_FALSE(blobs_.read(digest, 1).has_value());
  write_file_atomically(blobs_.path(digest), "[]");
  EXPECT_FALSE(blobs_.read(digest, 100).has_value());
  blobs_.put(digest, "{}", dir_.path(), cancel_);
  EXPECT_EQ(blobs_.read(digest, 100), "{}");
}

TEST_F(Blobs, IMG_32_ALeaseKeepsBlobsThatAreThereAndThoseThatAreComing) {
  store("kept");
  store("not kept");
  auto kept = of("kept").digest;
  auto other = of("not kept").digest;
  auto coming = of("coming");
  {
    BlobStream stream;
    download(coming, stream).write("com");
  }
  Folders folders{dir_.path()};
  {
    Staging staging(folders.staging());
    hold_blobs(staging, {kept, coming.digest});
    EXPECT_EQ(free_blobs(folders, {kept, other, coming.digest}).digests, std::vector<std::string>{other});
    EXPECT_TRUE(blobs_.size(kept));
    EXPECT_EQ(blobs_.partial_size(coming.digest), 3U);
  }
  EXPECT_EQ(free_blobs(folders, {kept, coming.digest}).digests.size(), 2U);
  EXPECT_TRUE(blobs_.all().empty());
  EXPECT_TRUE(blobs_.all_partial().empty());
}

TEST_F(Blobs, IMG_32_ABlobThatSomebodyIsAtIsNotFreed) {
  auto blob = of("0123456789");
  BlobStream stream;
  auto sink = download(blob, stream);
  sink.write("0123");
  EXPECT_TRUE(free_blobs(Folders{dir_.path()}, {blob.digest}).digests.empty());
  EXPECT_EQ(blobs_.partial_size(blob.digest), 4U);
}

class Stream : public ::testing::Test {
 protected:
  /// Reads to the end on a thread of its own.
  std::thread reader(BlobStream::Follow follow, std::string& into, bool& restarted) {
    return std::thread([&, follow] {
      FollowingSource source(stream_, follow, cancel_);
      try {
        for (auto piece = source.read(); !piece.empty(); piece = source.read()) into += piece;
      } catch (const BlobRestarted&) {
        restarted = true;
      } catch (const Error& error) {
        code_ = error.code();
      }
    });
  }
  void append(std::string_view bytes) {
    write_all(writer_.get(), bytes);
    stream_.grow(written_ += bytes.size());
  }

  TempDir dir_;
  std::filesystem::path file_ = dir_.path() / "blob";
  Fd writer_{::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  std::uint64_t written_ = 0;
  BlobStream stream_;
  CancellationToken cancel_;
  std::optional<ErrorCode> code_;
};

TEST_F(Stream, AReaderFollowsWhatIsWritten) {
  std::string read;
  bool restarted = false;
  auto thread = reader(BlobStream::Follow::growing, read, restarted);
  stream_.open(Fd(::open(file_.c_str(), O_RDONLY | O_CLOEXEC)), 0);
  for (int i = 0; i < 100; ++i) append("0123456789");
  stream_.finish();
  thread.join();
  EXPECT_EQ(read.size(), 1000U);
  EXPECT_FALSE(restarted);
}

TEST_F(Stream, ARestartBehindTheReaderEndsItsReading) {
  stream_.open(Fd(::open(file_.c_str(), O_RDONLY | O_CLOEXEC)), 0);
  append("01234");
  FollowingSource source(stream_, BlobStream::Follow::growing, cancel_);
  EXPECT_EQ(source.read(), "01234");
  stream_.restart();
  EXPECT_THROW(source.read(), BlobRestarted);
}

TEST_F(Stream, ARestartBeforeTheReaderIsNotNoticed) {
  stream_.open(Fd(::open(file_.c_str(), O_RDONLY | O_CLOEXEC)), 0);
  append("xxxxx");
  stream_.restart();
  ASSERT_EQ(::ftruncate(writer_.get(), 0), 0);
  ASSERT_EQ(::lseek(writer_.get(), 0, SEEK_SET), 0);
  written_ = 0;
  std::string read;
  bool restarted = false;
  auto thread = reader(BlobStream::Follow::growing, read, restarted);
  append("01234");
  stream_.finish();
  thread.join();
  EXPECT_EQ(read, "01234");
  EXPECT_FALSE(restarted);
}

TEST_F(Stream, WhoWantsItWholeReadsNothingBeforeTheEnd) {
  stream_.open(Fd(::open(file_.c_str(), O_RDONLY | O_CLOEXEC)), 0);
  append("xxxxx");
  std::string read;
  bool restarted = false;
  auto thread = reader(BlobStream::Follow::whole, read, restarted);
  stream_.restart();
  ASSERT_EQ(::ftruncate(writer_.get(), 0), 0);
  ASSERT_EQ(::lseek(writer_.get(), 0, SEEK_SET), 0);
  written_ = 0;
  append("01234");
  stream_.finish();
  thread.join();
  EXPECT_EQ(read, "01234");
  EXPECT_FALSE(restarted);
}

TEST_F(Stream, TheWritersFailureIsTheReaders) {
  std::string read;
  bool restarted = false;
  auto thread = reader(BlobStream::Follow::growing, read, restarted);
  stream_.fail(std::make_exception_ptr(Error(ErrorCode::network_error, "gone")));
  thread.join();
  EXPECT_EQ(code_, ErrorCode::network_error);
}

TEST_F(Stream, AFileThatBecomesShorterIsDamage) {
  stream_.open(Fd(::open(file_.c_str(), O_RDONLY | O_CLOEXEC)), 10);
  stream_.finish();
  FollowingSource source(stream_, BlobStream::Follow::growing, cancel_);
  EXPECT_EQ(code_of([&] { source.read(); }), ErrorCode::storage_error);
}

}  // namespace
}  // namespace holt::image
