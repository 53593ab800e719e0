<?php
// Uses WordPress without a web server: `wordpress_use.php install|write|read FOLDER SOCKET`.
// Prints what it found, as JSON.
[ , $step, $folder, $socket ] = $argv;
$_SERVER += [ 'HTTP_HOST' => 'localhost', 'SERVER_NAME' => 'localhost', 'REQUEST_URI' => '/',
    'SERVER_PROTOCOL' => 'HTTP/1.1', 'REMOTE_ADDR' => '127.0.0.1' ];
define( 'ABSPATH', $folder . '/' );
define( 'DB_NAME', 'app' );
define( 'DB_USER', 'app' );
define( 'DB_PASSWORD', 'app' );
define( 'DB_HOST', "localhost:$socket" );
define( 'WP_DISABLE_FATAL_ERROR_HANDLER', true );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'DB_COLLATE', '' );
define( 'DISABLE_WP_CRON', true );
define( 'WP_HTTP_BLOCK_EXTERNAL', true );
define( 'WP_INSTALLING', $step === 'install' );
foreach ( [ 'AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE' ] as $name ) {
    define( "{$name}_KEY", "key of $name" );
    define( "{$name}_SALT", "salt of $name" );
}
$table_prefix = 'wp_';
function wp_new_blog_notification( ...$ignored ) {
}
function wp_mail( ...$ignored ) {
    return true;
}
require ABSPATH . 'wp-settings.php';
$wpdb->show_errors( false );

const POSTS = 300;

function install() {
    require_once ABSPATH . 'wp-admin/includes/upgrade.php';
    $made = wp_install( 'A blog', 'admin', 'admin@example.org', true, '', 'Password-1' );
    return [ 'user' => $made['user_id'] ];
}

function text( $number ) {
    $words = [ 'cheetah', 'savanna', 'antelope', 'speed', 'Größe', 'naïve', '猎豹', 'night', 'rain' ];
    $found = [];
    for ( $at = 0; $at < 60 + $number % 90; $at++ ) {
        $found[] = $words[ ( $number * 7 + $at * ( 3 + $number % 5 ) ) % count( $words ) ];
    }
    return "Text $number. " . implode( ' ', $found ) . ( $number % 50 ? '' : " '\"\\ 🐆" );
}

function write() {
    require_once ABSPATH . 'wp-admin/includes/user.php';
    $users = $terms = $posts = [];
    for ( $number = 0; $number < 10; $number++ ) {
        $users[] = wp_insert_user( [ 'user_login' => "user$number", 'user_pass' => "pass$number",
            'user_email' => "user$number@example.org",
            'role' => $number % 2 ? 'author' : 'editor' ] );
        $terms[] = wp_insert_term( "Category $number", 'category',
            [ 'parent' => $number > 4 ? $terms[ $number - 5 ]['term_id'] : 0 ] );
    }
    for ( $number = 0; $number < POSTS; $number++ ) {
        $day = sprintf( '2024-%02d-%02d 12:%02d:00', 1 + $number % 12, 1 + $number % 28,
            $number % 60 );
        $posts[] = wp_insert_post( [ 'post_title' => "Post $number",
            'post_content' => text( $number ), 'post_status' => $number % 11 ? 'publish' : 'draft',
            'post_author' => $users[ $number % 10 ],
            'post_date' => $day, 'post_category' => [ $terms[ $number % 10 ]['term_id'] ],
            'tags_input' => [ 'tag' . $number % 13, 'tag' . $number % 17 ],
            'meta_input' => [ 'rank' => $number % 40, 'data' => [ 'n' => $number ] ] ], true );
    }
    foreach ( $posts as $number => $post ) {
        for ( $at = 0; $at < $number % 5; $at++ ) {
            wp_insert_comment( [ 'comment_post_ID' => $post, 'comment_author' => "Reader $at",
                'comment_content' => "Comment $at to $number",
                'comment_approved' => $at % 4 ? 1 : 0,
                'comment_date' => "2024-06-0" . ( 1 + $at ) . ' 08:00:00' ] );
        }
        if ( $number % 6 == 0 ) {
            wp_update_post( [ 'ID' => $post, 'post_content' => text( $number ) . ' revised' ] );
        }
        if ( $number % 29 == 0 ) {
            wp_delete_post( $post, true );
        } elseif ( $number % 31 == 0 ) {
            wp_trash_post( $post );
        }
    }
    wp_delete_user( $users[3], $users[4] );
    wp_delete_term( $terms[2]['term_id'], 'category' );
    set_transient( 'kept', [ 'a' => 1 ], 3600 );
    update_option( 'blogdescription', 'Described' );
    add_option( 'long_option', str_repeat( 'x', 300000 ), '', 'no' );
    return [ 'failed' => count( array_filter( $posts, 'is_wp_error' ) ) ];
}

function titles( $query ) {
    $found = new WP_Query( $query + [ 'posts_per_page' => 25,
        'orderby' => [ 'date' => 'ASC', 'ID' => 'ASC' ] ] );
    return [ $found->found_posts, wp_list_pluck( $found->posts, 'post_title' ) ];
}

function read() {
    global $wpdb;
    require_once ABSPATH . 'wp-admin/includes/upgrade.php';
    $post = get_posts( [ 'title' => 'Post 12', 'post_type' => 'post' ] )[0];
    return [
        'search' => titles( [ 's' => 'revised savanna' ] ),
        'other characters' => titles( [ 's' => '猎豹' ] ),
        'leopard' => titles( [ 's' => '🐆' ] ),
        'of a category' => titles( [ 'category_name' => 'category-4' ] ),
        'of two tags' => titles( [ 'tag_slug__and' => [ 'tag3', 'tag5' ] ] ),
        'by meta' => titles( [ 'meta_query' => [ [ 'key' => 'rank', 'value' => [ 5, 9 ],
            'type' => 'NUMERIC', 'compare' => 'BETWEEN' ] ] ] ),
        'of an author' => titles( [ 'author_name' => 'user4', 'paged' => 2 ] ),
        'of a month' => titles( [ 'date_query' => [ [ 'year' => 2024, 'month' => 5 ] ] ] ),
        'comments' => get_comments( [ 'status' => 'approve', 'count' => true,
            'search' => 'Comment 2' ] ),
        'counts' => [ (array) wp_count_posts(), (array) wp_count_comments() ],
        'terms' => wp_list_pluck( get_terms( [ 'taxonomy' => [ 'category', 'post_tag' ],
            'orderby' => 'id', 'hide_empty' => false ] ), 'count', 'slug' ),
        'users' => count_users(),
        'revisions' => count( wp_get_post_revisions( $post->ID ) ),
        'archives' => wp_get_archives( [ 'type' => 'monthly', 'show_post_count' => true,
            'echo' => false ] ),
        'transient' => get_transient( 'kept' ),
        'option' => md5( get_option( 'long_option' ) ),
        'login' => get_class( wp_authenticate( 'user1', 'pass1' ) ),
        'rendered' => md5( apply_filters( 'the_content', $post->post_content ) ),
        'update of the schema' => dbDelta( 'all', false ),
        'error' => $wpdb->last_error,
    ];
}

echo json_encode( $step() ), "\n";
