<?php
// Uses Laravel's Illuminate\Database: `laravel_use.php SOCKET [ENGINE]`. Prints what it found, as
// JSON.
require_once 'Illuminate/Database/autoload.php';
require_once 'Illuminate/Events/autoload.php';

use Illuminate\Database\Capsule\Manager as Capsule;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Eloquent\SoftDeletes;
use Illuminate\Database\QueryException;

class Post extends Model {
    use SoftDeletes;
    protected $guarded = [];
    protected $casts = [ 'data' => 'array' ];
    public function comments() {
        return $this->hasMany( Comment::class );
    }
    public function tags() {
        return $this->belongsToMany( Tag::class );
    }
}

class Comment extends Model {
    protected $guarded = [];
    public function post() {
        return $this->belongsTo( Post::class );
    }
}

class Tag extends Model {
    protected $guarded = [];
    public $timestamps = false;
}

function failure( $work ) {
    try {
        $work();
    } catch ( QueryException $failure ) {
        return $failure->errorInfo[1];
    }
    return 0;
}

$capsule = new Capsule();
// As config/database.php has it: strict mode, and an engine.
$capsule->addConnection( [ 'driver' => 'mysql', 'unix_socket' => $argv[1], 'host' => 'localhost',
    'database' => 'app', 'username' => 'app', 'password' => 'app', 'charset' => 'utf8mb4',
    'collation' => 'utf8mb4_unicode_ci', 'strict' => true, 'engine' => $argv[2] ?? null ] );
$capsule->setAsGlobal();
$capsule->bootEloquent();
$schema = Capsule::schema();
$schema->create( 'posts', function ( $table ) {
    $table->id();
    $table->string( 'title' )->index();
    $table->text( 'body' );
    $table->json( 'data' )->nullable();
    $table->timestamps();
    $table->softDeletes();
    $table->fullText( 'body' );
} );
$schema->create( 'comments', function ( $table ) {
    $table->id();
    $table->foreignId( 'post_id' )->constrained()->cascadeOnDelete();
    $table->string( 'text' );
    $table->timestamps();
} );
$schema->create( 'tags', function ( $table ) {
    $table->id();
    $table->string( 'word' )->unique();
} );
$schema->create( 'post_tag', function ( $table ) {
    $table->foreignId( 'post_id' )->constrained()->cascadeOnDelete();
    $table->foreignId( 'tag_id' )->constrained()->restrictOnDelete();
    $table->primary( [ 'post_id', 'tag_id' ] );
} );
$tags = array_map( fn( $number ) => Tag::create( [ 'word' => "tag$number" ] )->id, range( 1, 10 ) );
foreach ( range( 1, 60 ) as $number ) {
    $post = Post::create( [ 'title' => "Post $number",
        'body' => "savanna number $number " . str_repeat( 'run ', $number ),
        'data' => [ 'rank' => $number % 7 ] ] );
    foreach ( range( 0, $number % 4 ) as $at ) {
        $post->comments()->create( [ 'text' => "Comment $at" ] );
    }
    $post->tags()->attach( [ $tags[$number % 10], $tags[( $number + 3 ) % 10] ] );
}
$found = [
    'words' => Post::whereFullText( 'body', '+savanna +number', [ 'mode' => 'boolean' ] )
        ->orderBy( 'id' )->pluck( 'id' ),
    'of a tag' => Post::whereHas( 'comments', null, '>', 2 )->withCount( 'tags' )->orderBy( 'id' )
        ->pluck( 'tags_count', 'title' ),
    'json' => Post::where( 'data->rank', 3 )->orderBy( 'id' )->pluck( 'id' ),
    'page' => Post::with( 'comments' )->orderByDesc( 'id' )->limit( 3 )->get()
        ->map( fn( $post ) => $post->comments->count() ),
    'twice' => failure( fn() => Tag::create( [ 'word' => 'tag1' ] ) ),
    'no parent' => failure( fn() => Comment::create( [ 'post_id' => 999, 'text' => 'x' ] ) ),
    'children' => failure( fn() => Tag::find( $tags[2] )->delete() ),
    'upsert' => Tag::upsert( [ [ 'word' => 'tag1' ], [ 'word' => 'new' ] ], [ 'word' ] ),
    'nested' => Capsule::transaction( function () {
        Post::find( 3 )->update( [ 'title' => 'Outer' ] );
        try {
            Capsule::transaction( function () {
                Post::find( 3 )->update( [ 'title' => 'Inner' ] );
                throw new RuntimeException( 'back to the savepoint' );
            } );
        } catch ( RuntimeException $back ) {
        }
        return Post::lockForUpdate()->find( 3 )->title;
    } ),
    'forced' => Post::find( 9 )->forceDelete(),
    'soft' => Post::find( 10 )->delete(),
    'left' => [ Post::count(), Post::withTrashed()->count(), Comment::count(),
        Capsule::table( 'post_tag' )->count() ],
];
$schema->table( 'comments', function ( $table ) {
    $table->dropForeign( [ 'post_id' ] );
    $table->renameColumn( 'text', 'said' );
} );
$schema->table( 'comments', function ( $table ) {
    $table->integer( 'stars' )->default( 5 )->after( 'said' );
    $table->foreign( 'post_id' )->references( 'id' )->on( 'posts' )->restrictOnDelete();
} );
echo json_encode( $found ), "\n";
